// What a request target asks for in a folder: names one below the other, or nothing that could be there. No file system is asked.

export interface RequestPath {
  /** Decoded, none of them empty, hidden or more than one name. */
  readonly names: readonly string[];
  /** The target ended with a slash, so what is asked for is a folder. */
  readonly isFolder: boolean;
  /** As it came, with its question mark; empty when there is none. */
  readonly search: string;
}

/**
 * null: nothing that is served can be meant. Each name is decoded for itself, once, so an encoded slash separates nothing, and what begins with
 * a dot is hidden: dotfiles, and with them `.` and `..`, however they are written.
 */
export const readRequestPath = (target: string, separator: '/' | '\\'): RequestPath | null => {
  if (!target.startsWith('/')) return null;
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  const names = path.slice(1).split('/').map(decode);
  // Of `/` and `/folder/` the last one is empty; an empty one before it names nothing.
  const isFolder = names.at(-1) === '';
  if (isFolder) names.pop();
  if (!names.every((name) => name !== null && isServedName(name, separator))) return null;
  return { names: names as string[], isFolder, search: question < 0 ? '' : target.slice(question) };
};

/** Whether a file or folder of this name is served. On Windows a backslash separates, and a colon names a stream of a file. */
export const isServedName = (name: string, separator: '/' | '\\'): boolean =>
  name !== '' &&
  !name.startsWith('.') &&
  !name.includes('/') &&
  !name.includes('\0') &&
  // Of bytes that are no text: nobody could ask for it.
  !/[\ufffd\p{Cs}]/u.test(name) &&
  (separator === '/' || !/[\\:]/.test(name));

/** null: no UTF-8, or a percent sign that begins nothing. */
const decode = (encoded: string): string | null => {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return null;
  }
};

/** The target that asks for it. Begins with one slash, whatever the names are: no host can be read into it. */
export const folderTarget = ({ names, search }: Pick<RequestPath, 'names' | 'search'>): string =>
  `/${names.map((name) => `${encodeURIComponent(name)}/`).join('')}${search.replace(/[^!-~]/g, encodeURIComponent)}`;

/** A browser that goes to a page says so; programs that fetch data accept anything, or something else. */
export const acceptsHtml = (accept = ''): boolean =>
  accept.split(',').some((range) => /^\s*text\/html\s*(;(?!.*\bq=0(\.0*)?\s*$).*)?$/i.test(range));
