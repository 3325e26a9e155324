// One finished JSON line turned into a short one for people: time, level, message, fields.

interface Entry {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
}

const COLOURS: Record<string, string> = { debug: '90', info: '36', warn: '33', error: '31' };
const NOT_FIELDS = new Set(['level', 'time', 'msg']);

export const formatForPeople = (jsonLine: string, colour: boolean): string => {
  const entry = JSON.parse(jsonLine) as Entry;
  const level = String(entry.level);
  const paint = (code: string, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const fields = Object.entries(entry)
    .filter(([name]) => !NOT_FIELDS.has(name))
    .map(([name, value]) => `${oneLine(name)}=${fieldText(value)}`)
    .join(' ');
  const time = String(entry.time).slice(11, 19);
  const head = `${paint('90', time)} ${paint(COLOURS[level] ?? '0', level.toUpperCase().padEnd(5))} ${oneLine(String(entry.msg))}`;
  return `${fields === '' ? head : `${head} ${paint('90', fields)}`}\n`;
};

const fieldText = (value: unknown): string => {
  if (typeof value === 'string') return /^[^\s"=\p{Cc}\p{Cf}]+$/u.test(value) ? value : oneLine(JSON.stringify(value));
  // A stack is many lines; the message says what happened.
  if (isError(value)) return oneLine(JSON.stringify(value.message));
  return oneLine(JSON.stringify(value) ?? 'undefined');
};

const isError = (value: unknown): value is { message: string } =>
  typeof value === 'object' &&
  value !== null &&
  'stack' in value &&
  'message' in value &&
  typeof value.message === 'string';

/** Signs that turn the direction of what follows them, and ends of lines and paragraphs. */
const TURNING = /[\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Line breaks and escape sequences that came in with the data must not forge lines or steer a terminal. */
const oneLine = (text: string): string =>
  text
    .replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1))
    .replace(/[\u007f-\u009f]/g, '?')
    .replace(TURNING, '?');
