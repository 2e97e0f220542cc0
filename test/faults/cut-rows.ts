/** Streams that break behind their first content (reliability.md F40–F46, F54). */
import { clientDialects } from '../support/dialects.ts';
import { broken, errorTable as e, refused, rowsWith } from './fault-row.ts';
import { joined } from '../upstream/reply.ts';
import {
  begun,
  endMark,
  errorBody,
  frame,
  frameOf,
  rest,
  stream,
  textPiece,
} from './stream-pieces.ts';

export const cutRows = rowsWith({ shapes: ['stream'] }, [
  {
    id: 'F40 E4',
    name: 'reset in mid-stream',
    play: (upstream, _, contentSeen) => ({
      ...stream(begun(upstream), contentSeen),
      ending: 'reset',
    }),
    outcome: broken(e.interrupted),
  },
  {
    id: 'F40 E4',
    name: 'connection closed in mid-stream',
    play: (upstream) => ({ ...stream(begun(upstream)), ending: 'fin' }),
    outcome: broken(e.interrupted),
  },
  {
    id: 'F40 E4',
    name: 'a proper HTTP end in mid-stream',
    play: (upstream) => stream(begun(upstream)),
    outcome: broken(e.interrupted),
  },
  {
    id: 'F41',
    name: 'silence in mid-stream',
    play: (upstream) => ({ ...stream(begun(upstream)), ending: 'hang' }),
    impatient: 'to go on',
    hangs: true,
    outcome: broken(e.stalled),
  },
  {
    id: 'F43 E5',
    name: 'overload told in mid-stream',
    play: (upstream, _, contentSeen) =>
      stream(begun(upstream), contentSeen, frame(upstream, errorBody(upstream, 'overloaded'))),
    outcome: broken(e.overloadedMidStream),
  },
  {
    id: 'F43 E5',
    name: 'an error told in mid-stream, and a proper ending behind it',
    play: (upstream, _, contentSeen) =>
      stream(
        begun(upstream),
        contentSeen,
        joined([frame(upstream, errorBody(upstream, 'broken')), rest(upstream)]),
      ),
    outcome: broken(e.interrupted, {
      chat: { status: 200, type: 'server_error', code: 'upstream_unavailable' },
      messages: { status: 200, type: 'api_error' },
    }),
  },
  {
    id: 'F44',
    name: 'half a frame at the end',
    play: (upstream, _, contentSeen) => {
      const next = rest(upstream);
      // Of an AWS frame its lengths and half of a header.
      const dataStart = Math.max(0, next.indexOf('data: {'));
      return stream(begun(upstream), contentSeen, next.slice(0, dataStart + 20));
    },
    outcome: broken(e.broken, e.interrupted),
  },
  {
    id: 'F45',
    name: 'one frame of broken JSON, then a proper ending',
    play: (upstream, _, contentSeen) => {
      const broken = frameOf(upstream, '{"broken": ');
      return stream(begun(upstream), contentSeen, joined([broken, rest(upstream)]));
    },
    outcome: broken(e.broken),
  },
  {
    id: 'G11',
    name: 'one event that is nested too deep, then a proper ending',
    play: (upstream, _, contentSeen) => {
      const deep = frameOf(upstream, `{"deep":${'['.repeat(9000)}${']'.repeat(9000)}}`);
      return stream(begun(upstream), contentSeen, joined([deep, rest(upstream)]));
    },
    outcome: broken(e.broken),
  },
  {
    id: 'F46 E1',
    name: 'bytes that are no UTF-8',
    play: (upstream, _, contentSeen) => {
      const bytes = Buffer.from(JSON.stringify(textPiece(upstream, 'a#b')));
      bytes[bytes.indexOf('#')] = 0xff;
      return stream(begun(upstream), contentSeen, frameOf(upstream, bytes), rest(upstream));
    },
    outcome: broken(e.broken),
  },
  {
    id: 'F54',
    name: 'the end mark without any finish',
    play: (upstream, _, contentSeen) => stream(begun(upstream), contentSeen, endMark[upstream]),
    outcome: broken(e.interrupted, e.broken),
  },
  {
    id: 'F54',
    name: 'the end mark and nothing else',
    upstream: clientDialects,
    play: (upstream) => stream(endMark[upstream]),
    outcome: refused(e.e12, e.e11, e.interruptedEarly),
  },
]);
