/** opencode as a client of the messages endpoint, with `@ai-sdk/anthropic`. */
import { opencodeTurns } from './opencode-turns.ts';

opencodeTurns('messages');
