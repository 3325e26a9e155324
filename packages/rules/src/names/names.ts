/**
 * Maximum length of a DNS label.
 * @limit tunnels: Subdomain, length of a label | `TUNNEL_SUBDOMAIN_INVALID`
 */
const SUBDOMAIN_MAX_CHARS = 63;
/** Maximum characters of a rejected name shown in the error message. */
const REFUSED_NAME_SHOWN_CHARS = 40;

// Names chosen by people or generated: valid subdomains, the subdomain in a visitor's host, and printable texts.

// Valid subdomains. Names are compared in lower case; the reserved names belong to the operator.

export const RESERVED_SUBDOMAINS: ReadonlySet<string> = new Set([
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

/**
 * Names that mail programs, resolvers and browsers look up automatically, such as `wpad`. A tenant with such a name could set the proxy or
 * mail server of a whole network, so a new account cannot claim them. An account that already holds such a name keeps it.
 */
export const WITHHELD_SUBDOMAINS: ReadonlySet<string> = new Set([
  ...['wpad', 'isatap', 'autoconfig', 'autodiscover', 'mta-sts', 'postmaster', 'hostmaster', 'webmaster'],
  ...['dns', 'mx', 'smtp', 'imap', 'pop'],
  ...['ns', 'ns1', 'ns2', 'ns3', 'ns4', 'ns5', 'ns6', 'ns7', 'ns8', 'ns9'],
]);

/** Lowers ASCII letters only. Unicode lowering would turn the Kelvin sign into `k` and accept it. */
export const foldSubdomain = (name: string): string => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/**
 * Checks a single label. Returns an error message, or null if any account may request the name. `platformLabel` is another reserved label.
 */
export const problemOfPlainName = (name: string, platformLabel: string | null = null): string | null => {
  const folded = foldSubdomain(name);
  const isReserved = RESERVED_SUBDOMAINS.has(folded) || folded === platformLabel;
  return problemOfLabel(folded) ?? (isReserved ? 'it is reserved' : null);
};

/** Checks `shop`, `a.shop` or `*.shop`. A nested name belongs to `shop`, so the reserved words apply only to `shop`. */
export const problemOfSubdomain = (name: string, platformLabel: string | null = null): string | null => {
  const [first = '', second, ...more] = foldSubdomain(name).split('.');
  if (second === undefined) return problemOfPlainName(first, platformLabel);
  if (more.length > 0) return 'it has more than two labels';
  return (first === '*' ? null : problemOfLabel(first)) ?? problemOfPlainName(second, platformLabel);
};

/** Label of the platform's host directly below the domain. Null if the host is elsewhere, where no tunnel can conflict with it. */
export const platformLabelOf = (platformHost: string, domain: string): string | null => {
  const label = subdomainOf(platformHost, domain);
  return label === null || label.includes('.') ? null : label;
};

const problemOfLabel = (folded: string): string | null => {
  if (folded.length === 0) return 'it is empty';
  if (folded.length > SUBDOMAIN_MAX_CHARS) return `it is longer than ${SUBDOMAIN_MAX_CHARS} characters`;
  if (!/^[a-z0-9-]+$/.test(folded)) return 'only letters a-z, digits and hyphens are allowed';
  if (folded.startsWith('-') || folded.endsWith('-')) return 'it begins or ends with a hyphen';
  return null;
};

/** The wildcard that covers a nested name, one label deep as in certificates. Null for a name without dot. */
export const wildcardOver = (name: string): string | null => {
  const dot = name.indexOf('.');
  return dot < 1 ? null : `*${name.slice(dot)}`;
};

// The tunnel that a visitor means: one or two labels before the edge's domain.

/** `host` is in lower case, without port. Returns null for a name that no tunnel below the domain can have. */
export const subdomainOf = (host: string, domain: string): string | null => {
  // A trailing dot makes a name absolute for resolvers. The edge treats both forms alike.
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  const length = name.length - domain.length - 1;
  if (length < 1 || !name.endsWith(domain) || name[length] !== '.') return null;
  const label = name.slice(0, length);
  const dot = label.indexOf('.');
  if (dot === -1) return label;
  // Only tunnels have wildcard names; the host name of a visitor's request is never a wildcard.
  const isTwo = dot > 0 && dot < label.length - 1 && label.indexOf('.', dot + 1) === -1;
  return isTwo && !label.startsWith('*') ? label : null;
};

/** Returns true for the domain and any name below it. `host` is in lower case, without port. */
export const isOfDomain = (host: string, domain: string): boolean => {
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  return name === domain || name.endsWith(`.${domain}`);
};

/** Returns true for the edge's domain only. `host` is in lower case, without port. */
export const isDomainItself = (host: string, domain: string): boolean =>
  host === domain || (host.endsWith('.') && host.slice(0, -1) === domain);

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/**
 * Returns true for the edge itself: its domain, or an IP address, which no tunnel can have. `host` is in lower case, without port, IPv6 in
 * brackets.
 */
export const isEdgeItself = (host: string, domain: string): boolean => {
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  return name === domain || name.startsWith('[') || IPV4.test(name);
};

// Names chosen by people and shown to others: printable and of limited length.

/** Characters not allowed in texts: control, format, surrogate, private-use and unassigned characters, line and paragraph separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** Checks a text for length and unprintable characters. Returns an error message, or null if the text is valid. */
export const problemOfText = (text: string, maxCharacters: number): string | null => {
  const characters = [...text].length;
  if (characters === 0) return 'it is empty';
  if (characters > maxCharacters) return `it is longer than ${maxCharacters} characters`;
  return text.search(UNPRINTABLE) === -1 ? null : 'it has characters that cannot be printed';
};

/** Makes a rejected name safe to print: shortens it and replaces unprintable characters. */
export const shownText = (text: string, maxCharacters: number = REFUSED_NAME_SHOWN_CHARS): string =>
  [...text].slice(0, maxCharacters).join('').replace(UNPRINTABLE, '?');

// Generated tunnel names: two pronounceable words and enough randomness to prevent guessing.

const ADJECTIVES =
  'amber bold brave brisk calm clear clever cool cosy crisp dapper eager early easy fair fancy fine fleet fond free fresh gentle glad gold grand green happy hardy honest keen kind light lively loyal lucky mellow merry mild neat nimble noble open plain polite proud quick quiet rapid rare ready rosy royal sharp shiny silent silver smart smooth snug soft solid spry steady still sunny super sure sweet swift tidy tiny true vast warm wise witty young zesty'.split(
    ' ',
  );
const NOUNS =
  'acorn anchor apple arrow badger beach bear birch bird bridge brook cedar cliff cloud clover comet coral crane creek daisy dawn deer dune eagle elm falcon fern field finch fjord forest fox garden gecko glade grove harbor hawk hazel heron hill island ivy jasper kestrel koala lagoon lake lark leaf lemon lily lynx maple marsh meadow moon moss mountain oak ocean olive orca otter owl panda pearl pebble pine planet plum pond poppy quail rain raven reef river robin rose sail sand seal sky sparrow spring star stone storm stream summit sun swan thistle tiger trail tree tulip valley violet wave willow wind wolf wren'.split(
    ' ',
  );

/** Without vowels, so that no words appear by accident, and without look-alikes. */
const SUFFIX_CHARACTERS = 'bcdfghjkmnpqrstvwxz23456789';
const SUFFIX_LENGTH = 6;

/** `random` is in [0, 1). About 41 bits: 2^28 from the suffix and 2^13 from the words. */
export const generateName = (random: () => number): string => {
  const pick = (from: string | readonly string[]): string => from[Math.floor(random() * from.length)] as string;
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () => pick(SUFFIX_CHARACTERS)).join('');
  return `${pick(ADJECTIVES)}-${pick(NOUNS)}-${suffix}`;
};
