// In the joined program this is node-llama-cpp: what the engine uses of it (src/engine/library.ts).
export { Llama } from '../../node_modules/node-llama-cpp/dist/bindings/Llama.js';
export { LlamaGrammar } from '../../node_modules/node-llama-cpp/dist/evaluator/LlamaGrammar.js';
export { LlamaGrammarEvaluationState } from '../../node_modules/node-llama-cpp/dist/evaluator/LlamaGrammarEvaluationState.js';
export { TokenBias } from '../../node_modules/node-llama-cpp/dist/evaluator/TokenBias.js';
