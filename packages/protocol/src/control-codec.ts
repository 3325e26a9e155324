// Encodes and decodes the messages of a control connection as JSON text.
import { Fault } from '@tunnel/errors';
import {
  CONTROL_SCHEMAS,
  CONTROL_TEXT_MAX_CHARS,
  type ControlMessage,
  type ControlMessageInput,
  type ControlType,
} from './control-messages.ts';
import { WIRE_LIMITS } from './limits.ts';
import { cutText, encodeText, isLongerThan, parseJson } from './text-codec.ts';

export type Decoded =
  | { readonly ok: true; readonly message: ControlMessage }
  | { readonly ok: false; readonly fault: Fault };

const isKnown = (type: string): type is ControlType => Object.hasOwn(CONTROL_SCHEMAS, type);

const TEXTS_FOR_PEOPLE = ['message', 'reason'];

/** Characters of an unknown type shown in the error, so that the log line stays short. */
const UNKNOWN_TYPE_SHOWN_CHARS = 40;

/**
 * Keeps zod from compiling a function at the first message of each type. Compiling takes 2 to 4 ms per type at both ends of a client's
 * start, and would save only 10 µs for each further message.
 */
const WITHOUT_COMPILING = { jitless: true } as const;

export const decodeControl = (text: string): Decoded => {
  const limit = WIRE_LIMITS.CONTROL_FRAME_MAX_BYTES;
  if (isLongerThan(text, limit)) {
    return refuse(new Fault('CONTROL_FRAME_TOO_LARGE', { bytes: encodeText(text).length, limit }));
  }
  const value = parseJson(text);
  if (value === undefined) return refuseFrame('not JSON');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return refuseFrame('not a JSON object');
  const type: unknown = (value as { type?: unknown }).type;
  if (typeof type !== 'string') return refuseFrame('`type` is missing');
  if (!isKnown(type)) return refuse(new Fault('CONTROL_UNKNOWN_FRAME', { type: shown(type) }));
  const parsed = CONTROL_SCHEMAS[type].safeParse(value, WITHOUT_COMPILING);
  if (parsed.success) return { ok: true, message: parsed.data };
  const issue = parsed.error.issues[0];
  const path = [type, ...(issue?.path ?? [])].join('.');
  return refuseFrame(`${path}: ${issue?.message ?? 'not valid'}`);
};

/** Encodes a message. Texts for people are cut to the receiver's limit; the sender must keep all other fields within their limits. */
export const encodeControl = (message: ControlMessageInput): string => {
  // Only top-level texts of a message are cut, because a policy may have a header or claim with the same name.
  let sent: Record<string, unknown> = message;
  for (const key of TEXTS_FOR_PEOPLE) {
    const text = sent[key];
    if (typeof text !== 'string' || text.length <= CONTROL_TEXT_MAX_CHARS) continue;
    sent = { ...sent, [key]: cutText(text, CONTROL_TEXT_MAX_CHARS) };
  }
  return JSON.stringify(sent);
};

const shown = (type: string): string => cutText(type.replace(/[^\x20-\x7e]/g, '?'), UNKNOWN_TYPE_SHOWN_CHARS);

const refuse = (fault: Fault): Decoded => ({ ok: false, fault });

const refuseFrame = (reason: string): Decoded => refuse(new Fault('CONTROL_BAD_FRAME', { reason }));
