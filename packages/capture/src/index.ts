export { CapturedBody } from './captured-body.ts';
export { readableBody } from './readable-body.ts';
