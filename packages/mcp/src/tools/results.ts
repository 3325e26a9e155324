// Tool results for a model. A successful result contains the data twice, as structured content and as JSON text, within a size limit. A
// failure is one line of text.
import type { ErrorCode, Fault } from '@tunnel/errors';
import { cutText } from './arguments.ts';
import type { ToolOutput } from './tool.ts';

/**
 * Maximum size of a result, structured content and text together. A model pays for every word of a result.
 * @limit mcp: Tools: result, size | the result is shortened and marked `truncated`
 */
export const TOOL_RESULT_MAX_BYTES = 256 * 1024;
/** Maximum length of an error message, including quoted text of the caller. */
export const TOOL_MESSAGE_MAX_CHARS = 1000;

export interface ToolResult {
  readonly [field: string]: unknown;
  readonly content: { type: 'text'; text: string }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError?: boolean;
}

/** Reserve for the JSON-RPC envelope around a result. Progress tokens and ids are short. */
const ENVELOPE_BYTES = 1024;

/** Whether an output is within the size limit as sent: once as structured content, and once as text with escaped quotes. */
const fits = (output: ToolOutput): boolean => {
  const text = JSON.stringify(output);
  // Skips the exact measurement if the output is clearly too long.
  if (2 * text.length > TOOL_RESULT_MAX_BYTES) return false;
  const bytes = Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(text));
  return bytes + ENVELOPE_BYTES <= TOOL_RESULT_MAX_BYTES;
};

/** Shortens an output to the size limit. Removes the last entries of the list `list`; without a list, shortens the longest texts. */
export const boundedOutput = (output: ToolOutput, list: string | null): ToolOutput => {
  if (fits(output)) return output;
  const entries = list === null ? undefined : output[list];
  if (list !== null && Array.isArray(entries) && entries.length > 1) return cutList(output, list, entries);
  return cutTexts(output);
};

const cutList = (output: ToolOutput, list: string, entries: readonly unknown[]): ToolOutput => {
  const first = (count: number): ToolOutput => ({ ...output, [list]: entries.slice(0, count), truncated: true });
  // Binary search for the largest number of entries that fits. `low` fits or is 1; `high` does not fit.
  let low = 1;
  let high = entries.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (fits(first(middle))) low = middle;
    else high = middle;
  }
  const cut = first(low);
  return fits(cut) ? cut : cutTexts(cut);
};

/** Texts up to this length are never shortened. Longer than any id, name or address in a result. */
const SHORTEST_CUT_CHARS = 256;

interface Room {
  readonly chars: number;
  readonly entries: number;
}

/** Shortens an output: first its longest texts, then its longest lists, by dropping the last entries. */
const cutTexts = (output: ToolOutput): ToolOutput => {
  let cut: ToolOutput = output;
  let { chars, entries } = largestOf(output, { chars: 0, entries: 0 });
  while ((chars > SHORTEST_CUT_CHARS || entries > 1) && !fits(cut)) {
    if (chars > SHORTEST_CUT_CHARS) chars >>= 1;
    else entries >>= 1;
    // Each round starts from the previous result, so the work halves with every round.
    cut = { ...(within(cut, { chars, entries }) as ToolOutput), truncated: true };
  }
  return cut;
};

/**
 * Finds the longest text and the largest list in a value. The recursion is shallow, because the depth of a result is limited by its
 * schema.
 */
const largestOf = (value: unknown, { chars, entries }: Room): Room => {
  if (typeof value === 'string') return { chars: Math.max(chars, value.length), entries };
  if (typeof value !== 'object' || value === null) return { chars, entries };
  const inside = Object.values(value);
  return inside.reduce<Room>((largest, each) => largestOf(each, largest), {
    chars,
    entries: Math.max(entries, inside.length),
  });
};

const within = (value: unknown, room: Room): unknown => {
  if (typeof value === 'string') return cutText(value, room.chars);
  if (Array.isArray(value)) return value.slice(0, room.entries).map((entry) => within(entry, room));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, inner]) => [key, within(inner, room)] as const);
  // Always keeps FIELDS_KEPT fields. Objects with a fixed schema have fewer fields; only maps such as headers can have more.
  return Object.fromEntries(fields.slice(0, Math.max(room.entries, FIELDS_KEPT)));
};

/** Number of fields kept in every object. Larger than any object with a fixed schema. */
const FIELDS_KEPT = 32;

/** Makes a successful result from an output within the size limit. */
export const goodResult = (output: ToolOutput): ToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(output) }],
  structuredContent: output,
});

/**
 * Hints for models. They replace hints of the error catalogue that mention REST calls or commands, and name the suitable tool or ask for
 * the user's help.
 */
const NEXT_FOR_MODELS: Partial<Record<ErrorCode, string>> = {
  TUNNEL_UNKNOWN: 'Call list_tunnels to see the existing tunnels.',
  CLIENT_TUNNEL_UNKNOWN: 'Call list_tunnels to see the existing tunnels.',
  CLIENT_TUNNEL_AMBIGUOUS: 'Call list_tunnels and use the id of a tunnel.',
  CAPTURE_UNKNOWN: 'Call list_requests to see the captured requests.',
  CLIENT_REQUEST_UNKNOWN: 'Call list_requests to see the captured requests.',
  API_BAD_REQUEST: 'Correct the arguments and call again.',
  CLIENT_USAGE: 'Correct the arguments and call again.',
  CLIENT_LOGIN_NEEDED: 'Ask the user to run `tunnel login`.',
  INTERNAL: 'Try again. If the error persists, tell the user.',
};

/** Formats a fault as `CODE: message Next: hint`. */
export const lineOfFault = ({ code, message, next }: Fault): string => {
  // A fault received from another process has no values for the placeholders of the hint, so the placeholders become an ellipsis.
  const hint = NEXT_FOR_MODELS[code] ?? next.replaceAll(/\{\w+\}/g, '…');
  return `${code}: ${cutText(message, TOOL_MESSAGE_MAX_CHARS)} Next: ${hint}`;
};

export const failedResult = (fault: Fault): ToolResult => ({
  content: [{ type: 'text', text: lineOfFault(fault) }],
  isError: true,
});
