export { CapturedBody } from './captured-body.ts';
export { type EditedRequest, editRequest } from './edit-request.ts';
export { readableBody } from './readable-body.ts';
