// What goes back to a model: a result twice, as data and as the same JSON in text, within its bound; a failure as one line.
import type { ErrorCode, Fault } from '@tunnel/errors';
import { cutText } from './arguments.ts';
import type { ToolOutput } from './tool.ts';

/**
 * a result as it goes out, structured and as text: a model pays for every word of it
 * @limit mcp: Tools: result, size | the result is shortened and marked `truncated`
 */
export const TOOL_RESULT_MAX_BYTES = 256 * 1024;
/** of a failure in words, and of what a caller said that is quoted in it: a line, not a page */
export const TOOL_MESSAGE_MAX_CHARS = 1000;

export interface ToolResult {
  readonly [field: string]: unknown;
  readonly content: { type: 'text'; text: string }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError?: boolean;
}

/** The envelope around a result; a progress token and an id are short. */
const ENVELOPE_BYTES = 1024;

/** As it goes out: in the text every quote is escaped once more. */
const fits = (output: ToolOutput): boolean => {
  const text = JSON.stringify(output);
  // What is far too long already is not measured any further.
  if (2 * text.length > TOOL_RESULT_MAX_BYTES) return false;
  const bytes = Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(text));
  return bytes + ENVELOPE_BYTES <= TOOL_RESULT_MAX_BYTES;
};

/** Of a list its last entries go, until it fits; of anything else the ends of its longest texts. */
export const boundedOutput = (output: ToolOutput, list: string | null): ToolOutput => {
  if (fits(output)) return output;
  const entries = list === null ? undefined : output[list];
  if (list !== null && Array.isArray(entries) && entries.length > 1) return cutList(output, list, entries);
  return cutTexts(output);
};

const cutList = (output: ToolOutput, list: string, entries: readonly unknown[]): ToolOutput => {
  const first = (count: number): ToolOutput => ({ ...output, [list]: entries.slice(0, count), truncated: true });
  // The largest number that fits: `low` does, or is 1, `high` does not.
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

/** Longer than any id, name or address of ours; what is not longer stays whole. */
const SHORTEST_CUT_CHARS = 256;

interface Room {
  readonly chars: number;
  readonly entries: number;
}

/** First the texts give way, the longest most; what has thousands of short ones loses the last of them. */
const cutTexts = (output: ToolOutput): ToolOutput => {
  let cut: ToolOutput = output;
  let { chars, entries } = largestOf(output, { chars: 0, entries: 0 });
  while ((chars > SHORTEST_CUT_CHARS || entries > 1) && !fits(cut)) {
    if (chars > SHORTEST_CUT_CHARS) chars >>= 1;
    else entries >>= 1;
    // From what is left: each round has half as much to do.
    cut = { ...(within(cut, { chars, entries }) as ToolOutput), truncated: true };
  }
  return cut;
};

/** Its longest text and its longest list. Results are shallow: their depth is that of our schemas. */
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
  // Fields of a schema are few and stay; only headers and the like can be this many.
  return Object.fromEntries(fields.slice(0, Math.max(room.entries, FIELDS_KEPT)));
};

/** More than any object of our schemas has. */
const FIELDS_KEPT = 32;

/** Of an output within its bound. */
export const goodResult = (output: ToolOutput): ToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(output) }],
  structuredContent: output,
});

/** Where the catalogue names a call of REST or a command, a model is told the tool, or to ask. */
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

/** `CODE: message Next: hint`. */
export const lineOfFault = ({ code, message, next }: Fault): string => {
  // A fault that another process put into words has its values in the words alone.
  const hint = NEXT_FOR_MODELS[code] ?? next.replaceAll(/\{\w+\}/g, '…');
  return `${code}: ${cutText(message, TOOL_MESSAGE_MAX_CHARS)} Next: ${hint}`;
};

export const failedResult = (fault: Fault): ToolResult => ({
  content: [{ type: 'text', text: lineOfFault(fault) }],
  isError: true,
});
