// One label of a DNS name, in lower case: 1 to 63 letters, digits and hyphens, with no hyphen at either end.

/** The pattern of one label, for a regular expression that has more around it. */
export const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';

const WHOLE = new RegExp(`^${LABEL}$`);

export const isLabel = (text: string): boolean => WHOLE.test(text);
