/** The OpenAI Agents SDK on `/v1/responses`, as installed (wire/responses.md §9). */
import { withLibraries } from './installed.ts';
import { libraryTurns } from './library-turns.ts';

withLibraries((packages) => {
  libraryTurns({
    name: 'openai-agents',
    runner: [process.execPath],
    packages,
    program: 'openai-agents.mjs',
  });
});
