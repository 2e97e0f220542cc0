/** LangChain on `/v1/responses`, as installed (wire/responses.md §9). */
import { withLibraries } from './installed.ts';
import { libraryTurns } from './library-turns.ts';

withLibraries((packages) => {
  libraryTurns({
    name: 'langchain',
    runner: [process.execPath],
    packages,
    program: 'langchain.mjs',
  });
});
