/** Streams that are framed or ended oddly and are whole all the same (reliability.md F47–F53). */
import { clientDialects, sseUpstreams } from '../support/dialects.ts';
import { everyBytes } from '../upstream/scripted.ts';
import { eventMessage } from '../upstream/aws.ts';
import { rowsWith, served } from './fault-row.ts';
import {
  begun,
  contentCount,
  frame,
  legalFrames,
  rest,
  rewritten,
  seen,
  sseFrames,
  stream,
} from './stream-pieces.ts';

const frames = rowsWith({ shapes: ['stream'], outcome: served(seen) }, [
  {
    id: 'F47 E1',
    name: 'one byte at a time',
    play: (upstream) => ({ ...stream(...legalFrames(upstream)), split: everyBytes(1) }),
  },
  {
    id: 'F49 E3',
    name: 'messages of unknown names and kinds',
    upstream: 'converse',
    play: (upstream) =>
      stream(
        eventMessage({ ':message-type': 'event', ':event-type': 'initial-response' }, ''),
        begun(upstream),
        frame(upstream, { surprise: { text: 'not part of the answer' } }),
        rest(upstream),
      ),
  },
]);

/** Ways to write server-sent events. */
const lines = rowsWith({ shapes: ['stream'], upstream: sseUpstreams, outcome: served(seen) }, [
  { id: 'F48 E3', name: 'CR LF', play: rewritten((all) => all.replaceAll('\n', '\r\n')) },
  {
    id: 'F48 E3',
    name: 'CR LF, one byte at a time',
    play: (upstream) => ({
      ...stream(sseFrames(upstream).join('').replaceAll('\n', '\r\n')),
      split: everyBytes(1),
    }),
  },
  { id: 'F48 E3', name: 'CR', play: rewritten((all) => all.replaceAll('\n', '\r')) },
  {
    id: 'F48 E3',
    name: 'mixed line ends',
    play: (upstream) =>
      stream(
        sseFrames(upstream)
          .map((each, index) => each.replaceAll('\n', ['\n', '\r\n', '\r'][index % 3] ?? '\n'))
          .join(''),
      ),
  },
  { id: 'F48', name: 'a byte order mark first', play: rewritten((all) => `\ufeff${all}`) },
  {
    id: 'F49 E3',
    name: 'comments, ids, retry, and data without a space',
    play: (upstream) =>
      stream(
        `: OPENROUTER PROCESSING\n\n:\n\n${sseFrames(upstream)
          .map((each) => `: keep-alive\n\nid: 7\nretry: 5\n${each.replace('data: ', 'data:')}`)
          .join('')}`,
      ),
  },
  {
    id: 'F49 E3',
    name: 'events of unknown names',
    play: (upstream) =>
      stream(`${begun(upstream)}event: surprise\ndata: {"type":"surprise"}\n\n${rest(upstream)}`),
    unusualFrames: true,
  },
  {
    id: 'F49 E3',
    name: 'a named event without data',
    play: (upstream) => stream(`${begun(upstream)}event: ping\n\n${rest(upstream)}`),
    unusualFrames: true,
  },
  {
    id: 'F50 E3',
    name: 'data over several lines',
    play: (upstream) =>
      stream(
        sseFrames(upstream)
          .map((each) => each.replaceAll(',"', ',\ndata: "'))
          .join(''),
      ),
  },
  {
    id: 'F51',
    name: 'no blank line behind the last event',
    play: rewritten((all) => all.slice(0, -2)),
  },
  {
    id: 'F51',
    name: 'half a blank line behind the last event',
    play: rewritten((all) => all.slice(0, -1)),
  },
]);

export const framingRows = [...frames, ...lines];

/** In the two dialects that tell the finish and the end in different events. */
const before = { upstream: ['chat', 'messages'] } as const;

export const endingRows = rowsWith({ shapes: ['stream'] }, [
  {
    id: 'F58',
    name: 'the last event, then silence',
    play: (upstream) => ({ ...stream(...legalFrames(upstream)), ending: 'hang' }),
    impatient: 'to go on',
    hangs: true,
    outcome: served(seen),
  },
  {
    ...before,
    id: 'F52',
    name: 'a finish and no end mark',
    play: (upstream) => stream(sseFrames(upstream).slice(0, -1).join('')),
    outcome: served(seen),
  },
  {
    ...before,
    id: 'F52',
    name: 'a finish, no end mark, and a reset',
    play: (upstream, _, contentSeen) => {
      const frames = sseFrames(upstream);
      const content = contentCount(upstream);
      return {
        ...stream(
          frames.slice(0, content).join(''),
          contentSeen,
          frames.slice(content, -1).join(''),
        ),
        ending: 'fin',
      };
    },
    outcome: served(seen),
  },
  {
    ...before,
    id: 'F52 F58',
    name: 'a finish, then silence',
    play: (upstream) => ({
      ...stream(sseFrames(upstream).slice(0, -1).join('')),
      ending: 'hang',
    }),
    impatient: 'to go on',
    hangs: true,
    outcome: served(seen),
  },
  {
    id: 'F53',
    name: 'the end mark twice, and content behind it',
    upstream: clientDialects,
    play: (upstream) => {
      const frames = sseFrames(upstream);
      const [mark, content] = [frames.at(-1) ?? '', frames[contentCount(upstream) - 1] ?? ''];
      return stream(frames.join('') + mark + content + mark);
    },
    outcome: served(seen),
  },
]);
