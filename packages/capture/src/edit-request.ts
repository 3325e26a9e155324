// A captured request with a person's changes, head and body, ready to be sent: the rules are core's, the bytes are here.
import {
  type EditProblem,
  editedHead,
  fieldValueOf,
  isEdit,
  markProblem,
  putBackInBody,
  REDACTED,
  type RequestEdit,
  type RequestHead,
} from '@tunnel/core';
import { type BodyBounds, decodedBody } from './readable-body.ts';

export interface CapturedMessage {
  readonly head: RequestHead;
  /** Whole, one character per byte. */
  readonly body: string;
}

export interface EditedRequest {
  readonly kind: 'edited';
  readonly head: RequestHead;
  readonly body: Buffer;
}

/** null: there is nothing to change, and it goes out as it came. */
export const editRequest = async (
  stored: CapturedMessage,
  edit: RequestEdit,
  bounds: BodyBounds,
): Promise<EditedRequest | EditProblem | null> => {
  if (!isEdit(edit)) return null;
  const body = await bodyOf(stored, edit.body, bounds);
  if (!Buffer.isBuffer(body)) return body;
  const head = editedHead(stored.head, edit, { bytes: body.length, isNew: edit.body !== undefined });
  return head.kind === 'problem' ? head : { kind: 'edited', head, body };
};

const bodyOf = async (
  { head, body: kept }: CapturedMessage,
  edited: string | undefined,
  bounds: BodyBounds,
): Promise<Buffer | EditProblem> => {
  if (edited === undefined) return Buffer.from(kept, 'latin1');
  const text = await withSecrets({ head, body: kept }, edited, bounds);
  if (text === null) return markProblem('body');
  const bytes = Buffer.from(text);
  // No longer than what is kept, so that the new request can be edited in turn.
  if (bytes.length <= bounds.shownBytes) return bytes;
  return { kind: 'problem', reason: `body: over ${bounds.shownBytes} bytes` };
};

/** null: a mark stands where no secret was. */
const withSecrets = async (
  { head, body: kept }: CapturedMessage,
  edited: string,
  bounds: BodyBounds,
): Promise<string | null> => {
  if (!edited.includes(REDACTED)) return edited;
  const contentType = fieldValueOf(head.headers, 'content-type');
  const contentEncoding = fieldValueOf(head.headers, 'content-encoding');
  const stored = await decodedBody({ kept, contentType, contentEncoding }, bounds);
  const whole = putBackInBody(contentType, edited, stored ?? '');
  return whole.kind === 'text' ? whole.text : null;
};
