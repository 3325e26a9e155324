// Queries of addresses as plain text: a token of digits stays the text that it is.

export type Search = Readonly<Record<string, string>>;

export const parseSearch = (text: string): Search => Object.fromEntries(new URLSearchParams(text));

export const stringifySearch = (search: Readonly<Record<string, unknown>>): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(search)) {
    if (typeof value === 'string' || typeof value === 'number') query.set(name, String(value));
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
};

/** The fields of a page's address that it knows; all else is left out. */
export const textFields =
  <const Name extends string>(...names: readonly Name[]) =>
  (search: Readonly<Record<string, unknown>>): { readonly [Field in Name]?: string } => {
    const known = names.flatMap((name) => (typeof search[name] === 'string' ? [[name, search[name]] as const] : []));
    return Object.fromEntries(known) as { readonly [Field in Name]?: string };
  };
