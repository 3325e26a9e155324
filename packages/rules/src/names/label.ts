// A DNS label in lower case: 1 to 63 letters, digits and hyphens, without a hyphen at either end.

/** Pattern of a DNS label, for use inside longer regular expressions. */
export const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';

const WHOLE = new RegExp(`^${LABEL}$`);

export const isLabel = (text: string): boolean => WHOLE.test(text);
