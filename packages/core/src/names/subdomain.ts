// What a subdomain may be. Names are compared in lower case; the reserved ones belong to the operator.

const SUBDOMAIN_MAX_CHARACTERS = 63;

const RESERVED_SUBDOMAINS: ReadonlySet<string> = new Set([
  'www',
  'api',
  'app',
  'admin',
  'dashboard',
  'docs',
  'status',
  'mail',
  'control',
  'metrics',
  'edge',
  'localhost',
]);

/** ASCII only: the general rule would turn the sign of the kelvin into a `k`, and so let it pass. */
export const foldSubdomain = (name: string): string => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** null: a valid name that anyone may ask for. */
export const problemOfSubdomain = (name: string): string | null => {
  const folded = foldSubdomain(name);
  if (folded.length === 0) return 'it is empty';
  if (folded.length > SUBDOMAIN_MAX_CHARACTERS) return `it is longer than ${SUBDOMAIN_MAX_CHARACTERS} characters`;
  if (!/^[a-z0-9-]+$/.test(folded)) return 'only letters a-z, digits and hyphens are allowed';
  if (folded.startsWith('-') || folded.endsWith('-')) return 'it begins or ends with a hyphen';
  if (RESERVED_SUBDOMAINS.has(folded)) return 'it is reserved';
  return null;
};
