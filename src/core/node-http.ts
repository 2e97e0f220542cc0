/**
 * The values of `node:http`. An import of them reads all of its exports, and one of these (`WebSocket`) loads the undici
 * that is built into Node: 45 ms of CPU and 14 MB, in each process. Types may be imported.
 */
export const nodeHttp = process.getBuiltinModule('node:http');
