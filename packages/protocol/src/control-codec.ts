// Text in, a typed message or a named refusal out. Never throws: the bytes come from strangers.
import { Fault } from '@tunnel/errors';
import { CONTROL_TYPES, type ControlMessage, type ControlMessageInput, controlMessage } from './control-messages.ts';
import { LIMITS } from './limits.ts';

export type Decoded =
  | { readonly ok: true; readonly message: ControlMessage }
  | { readonly ok: false; readonly fault: Fault };

export const decodeControl = (text: string): Decoded => {
  if (text.length > LIMITS.CONTROL_FRAME_MAX_BYTES) {
    return refuse(new Fault('CONTROL_FRAME_TOO_LARGE', { bytes: text.length, limit: LIMITS.CONTROL_FRAME_MAX_BYTES }));
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return refuse(new Fault('CONTROL_BAD_FRAME', { reason: 'not JSON' }));
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return refuse(new Fault('CONTROL_BAD_FRAME', { reason: 'not a JSON object' }));
  }
  const type: unknown = (value as { type?: unknown }).type;
  if (typeof type !== 'string') return refuse(new Fault('CONTROL_BAD_FRAME', { reason: '`type` is missing' }));
  if (!(CONTROL_TYPES as readonly string[]).includes(type)) {
    return refuse(new Fault('CONTROL_UNKNOWN_FRAME', { type: type.slice(0, 40) }));
  }
  const parsed = controlMessage.safeParse(value);
  if (parsed.success) return { ok: true, message: parsed.data };
  const issue = parsed.error.issues[0];
  const path = issue?.path.join('.') ?? '';
  return refuse(new Fault('CONTROL_BAD_FRAME', { reason: `${type}${path ? `.${path}` : ''}: ${issue?.message ?? 'not valid'}` }));
};

export const encodeControl = (message: ControlMessageInput): string => JSON.stringify(message);

const refuse = (fault: Fault): Decoded => ({ ok: false, fault });
