/** What this process uses. Names without a prefix are those that every exporter has. */
import { performance } from 'node:perf_hooks';
import { single, type Family } from '../../observe/metrics/family.ts';

const startedAt = (): number => performance.timeOrigin / 1000;

export function processFamilies(): readonly Family[] {
  const { user, system } = process.cpuUsage();
  return [
    {
      name: 'process_cpu_seconds',
      type: 'counter',
      unit: 'seconds',
      help: 'CPU time of the process, user and system.',
      samples: single((user + system) / 1e6),
    },
    {
      name: 'process_start_time_seconds',
      type: 'gauge',
      unit: 'seconds',
      // A worker that was replaced takes nothing of the counts with it: they go on from the gateway's start.
      across: 'min',
      help: 'When the process started, since the epoch; of a gateway with workers the first of them.',
      samples: single(startedAt()),
    },
    ...memoryFamilies(),
    {
      name: 'model_gateway_event_loop_active_seconds',
      type: 'counter',
      unit: 'seconds',
      help: 'Time in which the event loop was at work; its rate is its utilization.',
      samples: single(performance.eventLoopUtilization().active / 1000),
    },
  ];
}

/** None where no file can be opened to read it from, since no descriptor is left (F92): the others are told all the same. */
function memoryFamilies(): readonly Family[] {
  try {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    return [
      bytes('process_resident_memory_bytes', 'Resident memory of the process.', rss),
      bytes('nodejs_heap_size_used_bytes', 'JavaScript heap in use.', heapUsed),
      bytes('nodejs_heap_size_total_bytes', 'JavaScript heap that is there.', heapTotal),
      bytes(
        'nodejs_external_memory_bytes',
        'Memory outside of the heap, buffers included.',
        external,
      ),
    ];
  } catch {
    return [];
  }
}

function bytes(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', unit: 'bytes', help, samples: single(value) };
}
