/**
 * a label of DNS has no more
 * @limit tunnels: Subdomain, length of a label | `TUNNEL_SUBDOMAIN_INVALID`
 */
const SUBDOMAIN_MAX_CHARS = 63;
/** of a refused name in the text that says why */
const REFUSED_NAME_SHOWN_CHARS = 40;

// Names that people choose or are given: what a subdomain may be, which one a visitor means, and texts that can be printed.

// What a subdomain may be. Names are compared in lower case; the reserved ones belong to the operator.

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
 * Names that mail programs, resolvers and browsers look up automatically, such as `wpad`. A tenant with such a name could set the proxy or the mail
 * server of a whole network, so a new account cannot claim one. An account that already holds one keeps its name.
 */
export const WITHHELD_SUBDOMAINS: ReadonlySet<string> = new Set([
  ...['wpad', 'isatap', 'autoconfig', 'autodiscover', 'mta-sts', 'postmaster', 'hostmaster', 'webmaster'],
  ...['dns', 'mx', 'smtp', 'imap', 'pop'],
  ...['ns', 'ns1', 'ns2', 'ns3', 'ns4', 'ns5', 'ns6', 'ns7', 'ns8', 'ns9'],
]);

/** ASCII only: the general rule would turn the sign of the kelvin into a `k`, and so let it pass. */
export const foldSubdomain = (name: string): string => name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

/** Of one label. null: a valid name that anyone may ask for. `platformLabel`: one more word that is the operator's. */
export const problemOfPlainName = (name: string, platformLabel: string | null = null): string | null => {
  const folded = foldSubdomain(name);
  const isReserved = RESERVED_SUBDOMAINS.has(folded) || folded === platformLabel;
  return problemOfLabel(folded) ?? (isReserved ? 'it is reserved' : null);
};

/** `shop`, `a.shop` or `*.shop`: what is nested belongs to `shop`, so that the reserved words are about it alone. */
export const problemOfSubdomain = (name: string, platformLabel: string | null = null): string | null => {
  const [first = '', second, ...more] = foldSubdomain(name).split('.');
  if (second === undefined) return problemOfPlainName(first, platformLabel);
  if (more.length > 0) return 'it has more than two labels';
  return (first === '*' ? null : problemOfLabel(first)) ?? problemOfPlainName(second, platformLabel);
};

/** The label that the platform's host has right below the domain; null: it is elsewhere, and no tunnel could be in its way. */
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

/** The wildcard that covers a nested name, for one label as certificates do; null: none does. */
export const wildcardOver = (name: string): string | null => {
  const dot = name.indexOf('.');
  return dot < 1 ? null : `*${name.slice(dot)}`;
};

// Which tunnel a visitor means: the label in front of the edge's own domain, or two of them.

/** `host` in lower case and without a port. null: not a name that a tunnel below the domain could serve. */
export const subdomainOf = (host: string, domain: string): string | null => {
  // One trailing dot makes a name absolute for a resolver; to us it is the same name.
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  const length = name.length - domain.length - 1;
  if (length < 1 || !name.endsWith(domain) || name[length] !== '.') return null;
  const label = name.slice(0, length);
  const dot = label.indexOf('.');
  if (dot === -1) return label;
  // A wildcard is what tunnels have; no visitor's host is one.
  const isTwo = dot > 0 && dot < label.length - 1 && label.indexOf('.', dot + 1) === -1;
  return isTwo && !label.startsWith('*') ? label : null;
};

/** The domain itself, or any name under it, however deep. `host` as above. */
export const isOfDomain = (host: string, domain: string): boolean => {
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  return name === domain || name.endsWith(`.${domain}`);
};

/** The domain of the edge, and nothing below it. `host` as above. */
export const isDomainItself = (host: string, domain: string): boolean =>
  host === domain || (host.endsWith('.') && host.slice(0, -1) === domain);

const IPV4 = /^\d{1,3}(\.\d{1,3}){3}$/;

/** The edge itself, and no tunnel of it: the domain, or an address, which no name of a tunnel can be. `host` as above, IPv6 in brackets. */
export const isEdgeItself = (host: string, domain: string): boolean => {
  const name = host.endsWith('.') ? host.slice(0, -1) : host;
  return name === domain || name.startsWith('[') || IPV4.test(name);
};

// Names that people choose and other people read: of characters that can be printed, and not too many of them.

/** Control, format, surrogate, private and unassigned characters, line and paragraph separators. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** null: nothing to object to. */
export const problemOfText = (text: string, maxCharacters: number): string | null => {
  const characters = [...text].length;
  if (characters === 0) return 'it is empty';
  if (characters > maxCharacters) return `it is longer than ${maxCharacters} characters`;
  return text.search(UNPRINTABLE) === -1 ? null : 'it has characters that cannot be printed';
};

/** A refused name goes into a line for people: no character of it may break that line. */
export const shownText = (text: string, maxCharacters: number = REFUSED_NAME_SHOWN_CHARS): string =>
  [...text].slice(0, maxCharacters).join('').replace(UNPRINTABLE, '?');

// Names for tunnels that ask for none: two words a person can say, and enough chance that nobody finds one by trying.

const ADJECTIVES =
  'amber bold brave brisk calm clear clever cool cosy crisp dapper eager early easy fair fancy fine fleet fond free fresh gentle glad gold grand green happy hardy honest keen kind light lively loyal lucky mellow merry mild neat nimble noble open plain polite proud quick quiet rapid rare ready rosy royal sharp shiny silent silver smart smooth snug soft solid spry steady still sunny super sure sweet swift tidy tiny true vast warm wise witty young zesty'.split(
    ' ',
  );
const NOUNS =
  'acorn anchor apple arrow badger beach bear birch bird bridge brook cedar cliff cloud clover comet coral crane creek daisy dawn deer dune eagle elm falcon fern field finch fjord forest fox garden gecko glade grove harbor hawk hazel heron hill island ivy jasper kestrel koala lagoon lake lark leaf lemon lily lynx maple marsh meadow moon moss mountain oak ocean olive orca otter owl panda pearl pebble pine planet plum pond poppy quail rain raven reef river robin rose sail sand seal sky sparrow spring star stone storm stream summit sun swan thistle tiger trail tree tulip valley violet wave willow wind wolf wren'.split(
    ' ',
  );

/** No vowels: no words by accident. No look-alikes. */
const SUFFIX_CHARACTERS = 'bcdfghjkmnpqrstvwxz23456789';
const SUFFIX_LENGTH = 6;

/** `random` in [0, 1). About 41 bits: 2^28 of the suffix and 2^13 of the words. */
export const generateName = (random: () => number): string => {
  const pick = (from: string | readonly string[]): string => from[Math.floor(random() * from.length)] as string;
  const suffix = Array.from({ length: SUFFIX_LENGTH }, () => pick(SUFFIX_CHARACTERS)).join('');
  return `${pick(ADJECTIVES)}-${pick(NOUNS)}-${suffix}`;
};
