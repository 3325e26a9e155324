// The headers of requests to the collector, as configured: "name=value,name=value".

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible characters and inner blanks. Control characters could end the header line. */
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/** Headers that describe the message or the connection, and are written by the exporter. */
const RESERVED: ReadonlySet<string> = new Set([
  ...['connection', 'content-encoding', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'te'],
  ...['trailer', 'transfer-encoding', 'upgrade'],
]);

/**
 * Parses the list. Values are percent-decoded, as in the variable OTEL_EXPORTER_OTLP_HEADERS, so that a value can contain a comma (%2C).
 * Returns null if an entry is malformed, repeated or reserved.
 */
export const parseOtlpHeaders = (text: string): Readonly<Record<string, string>> | null => {
  if (text.trim() === '') return {};
  const headers = new Map<string, string>();
  for (const entry of text.split(',')) {
    const at = entry.indexOf('=');
    const name = entry.slice(0, Math.max(at, 0)).trim().toLowerCase();
    const value = decoded(entry.slice(at + 1).trim());
    if (!NAME.test(name) || RESERVED.has(name) || headers.has(name)) return null;
    if (value === null || !VALUE.test(value)) return null;
    headers.set(name, value);
  }
  return Object.fromEntries(headers);
};

const decoded = (value: string): string | null => {
  try {
    return decodeURIComponent(value);
  } catch {
    return null;
  }
};
