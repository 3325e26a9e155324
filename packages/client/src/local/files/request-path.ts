// Parses a request target into the path of a file or folder. No file system access.

export interface RequestPath {
  /** Decoded names in the path of the requested file. None is empty, hidden, or contains a separator. */
  readonly names: readonly string[];
  /** True if the requested path ended with a slash, which means a folder. */
  readonly isFolder: boolean;
  /** Query string of the request with its question mark, unchanged. Empty without a query. */
  readonly search: string;
}

/**
 * Parses a request target. Returns null if no served file can be meant. Every name is decoded once and separately, so an encoded slash does
 * not separate. Names with a leading dot are hidden, which includes `.` and `..` in any encoding.
 */
export const readRequestPath = (target: string, separator: '/' | '\\'): RequestPath | null => {
  if (!target.startsWith('/')) return null;
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const names = path.slice(1).split('/').map(decode);
  // The last name of `/` and `/folder/` is empty. Other empty names are invalid.
  const isFolder = names.at(-1) === '';
  if (isFolder) names.pop();
  if (!names.every((name) => name !== null && isServedName(name, separator))) return null;
  return { names: names as string[], isFolder, search: question < 0 ? '' : target.slice(question) };
};

/**
 * Tells whether a file or folder with this name is served. On Windows a backslash separates names, and a colon addresses a stream of a
 * file.
 */
export const isServedName = (name: string, separator: '/' | '\\'): boolean =>
  name !== '' &&
  !name.startsWith('.') &&
  !name.includes('/') &&
  !name.includes('\0') &&
  // A file name that is not valid Unicode cannot be requested.
  !/[\ufffd\p{Cs}]/u.test(name) &&
  (separator === '/' || !/[\\:]/.test(name));

/** Decodes a percent-encoded name. Returns null for invalid UTF-8 or an incomplete encoding. */
const decode = (encoded: string): string | null => {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
};

/** Returns the request target of a folder. Starts with exactly one slash, so that the target cannot be read as a host. */
export const folderTarget = ({ names, search }: Pick<RequestPath, 'names' | 'search'>): string =>
  `/${names.map((name) => `${encodeURIComponent(name)}/`).join('')}${search.replace(/[^!-~]/g, encodeURIComponent)}`;

/** Tells whether the client asks for HTML: browsers do so for pages, programs that fetch data do not. */
export const acceptsHtml = (accept = ''): boolean =>
  accept.split(',').some((range) => /^\s*text\/html\s*(;(?!.*\bq=0(\.0*)?\s*$).*)?$/i.test(range));
