export { CATALOGUE, type CatalogueEntry, ERROR_CODES, type ErrorCode, isErrorCode } from './catalogue.ts';
export { Fault, type FaultOptions, type FaultValues } from './fault.ts';
export { nearestWord } from './nearest-word.ts';
