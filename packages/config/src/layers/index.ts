export { readGroupKeyFile, readSecretText } from './entry-secret.ts';
export { readConfigText } from './file-layers.ts';
export { pathFrom } from './path-from.ts';
export { ConfigProblem } from './problem.ts';
