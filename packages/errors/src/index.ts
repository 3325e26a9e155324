export { CATALOGUE, ERROR_CODES, type ErrorCode, isErrorCode } from './catalogue.ts';
export { Fault, type FaultValues } from './fault.ts';
export { nearestWord } from './nearest-word.ts';
