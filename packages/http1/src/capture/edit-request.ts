// Applies a user's changes to the head and body of a captured request, so that the request can be sent. The rules are in edited-request;
// this file handles the bytes.
import { type EditProblem, editedHead, isEdit, markProblem, type RequestEdit } from '../edited-request.ts';
import { fieldValueOf } from '../fields.ts';
import { putBackInBody } from '../put-back.ts';
import { REDACTED } from '../redact.ts';
import { type RequestHead } from '../request-head.ts';
import { type BodyBounds, decodedBody, withoutSecrets } from './readable-body.ts';

export interface CapturedMessage {
  readonly head: RequestHead;
  /** The whole body of the captured request, one character per byte. */
  readonly body: string;
}

export interface EditedRequest {
  readonly kind: 'edited';
  readonly head: RequestHead;
  readonly body: Buffer;
}

/** Applies a user's changes to a captured request. Returns null if there are no changes; the captured request is then sent as received. */
export const editRequest = async (
  stored: CapturedMessage,
  edit: RequestEdit,
  bounds: BodyBounds,
): Promise<EditedRequest | EditProblem | null> => {
  if (!isEdit(edit)) return null;
  const text = await textOf(stored, bounds);
  const body = bodyOf(stored, edit.body, text, bounds);
  if (!Buffer.isBuffer(body)) return body;
  const isNew = edit.body !== undefined;
  const hasSecrets = isNew ? edit.body.includes(REDACTED) : text.whole !== text.shown;
  const head = editedHead(stored.head, edit, { bytes: body.length, isNew, hasSecrets });
  return head.kind === 'problem' ? head : { kind: 'edited', head, body };
};

interface StoredText {
  readonly contentType: string | null;
  /** The stored request body in decoded form, or '' if the body is not text. */
  readonly whole: string;
  /** The decoded request body with hidden secrets, as shown to users. */
  readonly shown: string;
}

const textOf = async ({ head, body: kept }: CapturedMessage, bounds: BodyBounds): Promise<StoredText> => {
  const contentType = fieldValueOf(head.headers, 'content-type');
  const contentEncoding = fieldValueOf(head.headers, 'content-encoding');
  const whole = (await decodedBody({ kept, contentType, contentEncoding }, bounds)) ?? '';
  return { contentType, whole, shown: withoutSecrets(contentType, whole) };
};

const bodyOf = (
  { body: kept }: CapturedMessage,
  edited: string | undefined,
  { contentType, whole }: StoredText,
  { shownBytes }: BodyBounds,
): Buffer | EditProblem => {
  if (edited === undefined) return Buffer.from(kept, 'latin1');
  const text = putBackInBody(contentType, edited, whole);
  // The edited text contains a mark at a place without a stored secret.
  if (text.kind === 'problem') return markProblem('body');
  const bytes = Buffer.from(text.text);
  // Limit the new body to the size that captures keep, so that the new request can be edited again.
  return bytes.length <= shownBytes ? bytes : { kind: 'problem', reason: `body: larger than ${shownBytes} bytes` };
};
