/** opencode as a client of the chat endpoint, with `@ai-sdk/openai-compatible`. */
import { opencodeTurns } from './opencode-turns.ts';

opencodeTurns('chat');
