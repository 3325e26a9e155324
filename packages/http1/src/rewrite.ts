// What passes on of a head, and what is written anew: the request for the local service, the response for the visitor.
import { eachListItem, isFieldValue } from './characters.ts';
import type { ChunkedForm } from './chunked-body.ts';
import { type FieldRole, type HeaderField, LineField, PartField } from './fields.ts';
import { type Framing, UNTIL_CLOSE } from './framing.ts';
import type { HttpVersion, RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

// ---- for the service: the visitor's request, without what concerns only the visitor's connection, with what only we know ----

export interface ServiceRequestOptions {
  readonly visitorAddress: string;
  /** All of X-Forwarded-For, where a proxy that is believed has spoken; else the address is appended to what the visitor claims. */
  readonly forwardedFor?: string | undefined;
  /** How the visitor reached us. */
  readonly proto: 'http' | 'https';
  /** `keep`: the service sees the public name. */
  readonly hostHeader: 'keep' | { readonly rewrite: string };
  /** By it the service knows that all this is our word; absent: it has no such knowledge of us. Of visitors the field never passes. */
  readonly secret?: string | undefined;
  /** The id of the request that is sent again; absent: it is a visitor's own. Of visitors the field never passes. */
  readonly replayOf?: string | undefined;
}

/** HTTP/1.1 whatever the visitor speaks; one character per byte. */
export const requestHeadFor = (head: RequestHead, options: ServiceRequestOptions): string =>
  `${head.method} ${head.path} HTTP/1.1\r\nHost: ${hostFor(head, options)}\r\n${keptLines(head, isKeptOf(head, options))}` +
  `X-Forwarded-For: ${forwardedFor(head, options)}\r\n` +
  `X-Forwarded-Proto: ${options.proto}\r\nX-Forwarded-Host: ${head.authority}\r\n` +
  `X-Forwarded-Port: ${forwardedPort(head, options)}\r\nX-Real-IP: ${printable(options.visitorAddress)}\r\n` +
  `${secretLine(options)}${framingLine(head)}${connectionLines(head)}${replayLine(options)}\r\n`;

const secretLine = ({ secret }: ServiceRequestOptions): string =>
  secret === undefined ? '' : `X-Tunnel-Secret: ${printable(secret)}\r\n`;

/** The last line of the head: the client looks for it there, and nowhere else. */
const replayLine = ({ replayOf }: ServiceRequestOptions): string =>
  replayOf === undefined ? '' : `X-Tunnel-Replay: ${printable(replayOf)}\r\n`;

/** The same request for a service of HTTP/2, which frames bodies by itself and has no fields of a connection. */
interface ServiceRequestFields {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly fields: readonly HeaderField[];
}

export const requestFieldsFor = (head: RequestHead, options: ServiceRequestOptions): ServiceRequestFields => {
  const fields = keptFields(head, isKeptOf(head, options));
  fields.push(
    new PartField('x-forwarded-for', forwardedFor(head, options), 'forwarded-for'),
    new PartField('x-forwarded-proto', options.proto, 'forwarded'),
    new PartField('x-forwarded-host', head.authority, 'forwarded'),
    new PartField('x-forwarded-port', forwardedPort(head, options), 'forwarded'),
    new PartField('x-real-ip', printable(options.visitorAddress), 'forwarded'),
  );
  if (options.secret !== undefined)
    fields.push(new PartField('x-tunnel-secret', printable(options.secret), 'forwarded'));
  if (options.replayOf !== undefined)
    fields.push(new PartField('x-tunnel-replay', printable(options.replayOf), 'forwarded'));
  if (head.framing.kind === 'length') fields.push(new PartField('content-length', `${head.framing.length}`, 'length'));
  if (takesTrailers(head)) fields.push(new PartField('te', 'trailers', 'te'));
  return { method: head.method, path: head.path, authority: hostFor(head, options), fields };
};

const hostFor = ({ authority }: RequestHead, { hostHeader }: ServiceRequestOptions): string =>
  hostHeader === 'keep' ? authority : printable(hostHeader.rewrite);

/** A proxy that is believed has spoken, so that its other claims count as well. */
const isProxied = ({ forwardedFor: known }: ServiceRequestOptions): boolean => known !== undefined;

const isKeptOf = ({ version }: RequestHead, options: ServiceRequestOptions): ((role: FieldRole) => boolean) => {
  if (isProxied(options)) return version === '1.1' ? isKeptOf11OfProxy : isKeptOf10OfProxy;
  return version === '1.1' ? isKeptOf11 : isKeptOf10;
};

const isKeptOf11 = (role: FieldRole): boolean => role === 'ordinary' || role === 'expect';

/** A visitor of HTTP/1.0 does not know 100 (Continue), so the service must not be asked for one (RFC 9110, 10.1.1). */
const isKeptOf10 = (role: FieldRole): boolean => role === 'ordinary';

const isKeptOf11OfProxy = (role: FieldRole): boolean => role === 'claim' || isKeptOf11(role);

const isKeptOf10OfProxy = (role: FieldRole): boolean => role === 'claim' || isKeptOf10(role);

const forwardedFor = (head: RequestHead, { forwardedFor: known, visitorAddress }: ServiceRequestOptions): string => {
  if (known !== undefined) return known;
  const claim = forwardedForOf(head);
  return claim === '' ? printable(visitorAddress) : `${claim}, ${printable(visitorAddress)}`;
};

/** The port that the visitor asked for: as a proxy that is believed says, else of the authority, else the usual one. */
const forwardedPort = (head: RequestHead, options: ServiceRequestOptions): string => {
  const said = isProxied(options) ? forwardedPortOf(head) : null;
  if (said !== null) return said;
  const { authority, host } = head;
  // The authority is the host, of the same length in whatever case, and where there is one a colon and the port.
  const port = authority.length > host.length + 1 ? authority.slice(host.length + 1) : '';
  return port === '' ? USUAL_PORT[options.proto] : port;
};

const USUAL_PORT = { http: '80', https: '443' } as const;

/** Written anew: `Content-Length:   0005` is one length to us and must not be another one to the service. */
const framingLine = ({ framing }: RequestHead): string => {
  if (framing.kind === 'length') return `Content-Length: ${framing.length}\r\n`;
  return framing.kind === 'chunked' ? 'Transfer-Encoding: chunked\r\n' : '';
};

const takesTrailers = (head: RequestHead): boolean => head.teTrailers && head.version === '1.1';

const connectionLines = (head: RequestHead): string => {
  const wantsTrailers = takesTrailers(head);
  if (head.upgrade !== null) {
    const options = wantsTrailers ? 'Upgrade, TE' : 'Upgrade';
    return `Connection: ${options}\r\nUpgrade: ${head.upgrade}\r\n${wantsTrailers ? 'TE: trailers\r\n' : ''}`;
  }
  return wantsTrailers ? 'Connection: TE\r\nTE: trailers\r\n' : '';
};

/** Values from elsewhere than a parsed head. They are checked where they come in; here a line cannot be broken even so. */
const printable = (value: string): string =>
  isFieldValue(value) ? value : [...value].filter((character) => isFieldValue(character)).join('');

// ---- for the visitor: the service's response, with the framing and the connection that suit this visitor ----

interface VisitorResponseOptions {
  readonly visitorVersion: HttpVersion;
  /** The visitor's wish, and ours. */
  readonly keepAlive: boolean;
}

export interface VisitorResponse {
  /** Empty: the visitor cannot be told (a 1xx in HTTP/1.0). One character per byte. */
  readonly text: string;
  /** How the visitor finds the body's end. */
  readonly framing: Framing;
  /** How to read a chunked body for it. */
  readonly form: ChunkedForm;
  /** false: close after the body. */
  readonly keepAlive: boolean;
}

export const responseHeadFor = (head: ResponseHead, options: VisitorResponseOptions): VisitorResponse => {
  const isOld = options.visitorVersion === '1.0';
  if (head.interim && isOld) return { text: '', framing: head.framing, form: 'chunks', keepAlive: options.keepAlive };
  const isUnchunked = isOld && head.framing.kind === 'chunked';
  const framing = isUnchunked ? UNTIL_CLOSE : head.framing;
  const keepAlive = options.keepAlive && framing.kind !== 'until-close';
  const connection = head.interim ? '' : responseConnectionLines(head, keepAlive, isOld);
  const text =
    `HTTP/1.1 ${head.status} ${head.reason}\r\n${keptLines(head, isKeptOfResponse)}` +
    `${responseFramingLine(head, isOld)}${connection}\r\n`;
  return { text, framing, form: isUnchunked ? 'data' : 'chunks', keepAlive };
};

/** For HTTP/2, which frames by itself: what passes on, and the length where it is known. */
export const endToEndFields = (head: ResponseHead): HeaderField[] => keptFields(head, isKeptOfResponse);

const isKeptOfResponse = (role: FieldRole): boolean => {
  switch (role) {
    case 'connection':
    case 'hop':
    case 'coding':
    case 'length':
    case 'upgrade':
    case 'te':
      return false;
    default:
      return true;
  }
};

/** Of HEAD and 304 the length or coding that the body would have had; of 1xx and 204 none (RFC 9110, 8.6). */
const responseFramingLine = (head: ResponseHead, isOld: boolean): string => {
  if (head.status < 200 || head.status === 204) return '';
  if (head.contentLength !== null) return `Content-Length: ${head.contentLength}\r\n`;
  return head.isChunked && !isOld ? 'Transfer-Encoding: chunked\r\n' : '';
};

const responseConnectionLines = (head: ResponseHead, keepAlive: boolean, isOld: boolean): string => {
  if (head.status === 101) return `Connection: Upgrade\r\nUpgrade: ${head.upgrade ?? ''}\r\n`;
  // 426 says what to upgrade to (RFC 9110, 15.5.22).
  if (head.upgrade !== null) {
    return `Connection: ${keepAlive ? 'Upgrade' : 'close, Upgrade'}\r\nUpgrade: ${head.upgrade}\r\n`;
  }
  if (!keepAlive) return 'Connection: close\r\n';
  return isOld ? 'Connection: keep-alive\r\n' : '';
};

// ---- what passes on unchanged ----

interface ReadHead {
  readonly headers: readonly HeaderField[];
  readonly connectionNames: readonly string[] | null;
}

/** The field lines that pass on unchanged, cut out of the text that they stand in, in as few pieces as there are gaps; parts are written. */
const keptLines = (head: ReadHead, isKept: (role: FieldRole) => boolean): string => {
  let lines = '';
  let source = '';
  let from = -1;
  let to = -1;
  for (const field of head.headers) {
    const passes = isKept(field.role) && !isNamed(field, head.connectionNames);
    const isLine = passes && field instanceof LineField;
    // A field that a rule took away is a gap, too.
    if (from !== -1 && (!isLine || field.from !== to)) {
      lines += source.slice(from, to);
      from = -1;
    }
    if (isLine) {
      if (from === -1) {
        source = field.source;
        from = field.from;
      }
      to = field.to;
    } else if (passes) lines += field.line;
  }
  return from === -1 ? lines : lines + source.slice(from, to);
};

/** The fields that keptLines keeps, one by one: for HTTP/2, which has no lines. */
const keptFields = (head: ReadHead, isKept: (role: FieldRole) => boolean): HeaderField[] =>
  head.headers.filter((field) => isKept(field.role) && !isNamed(field, head.connectionNames));

/**
 * A sender may declare any field its own matter with this connection (RFC 9110, 7.6.1). Only ordinary ones are removed for
 * that: whoever names Host, Content-Length or Expect there tries to make us forget them.
 */
const isNamed = (field: HeaderField, names: readonly string[] | null): boolean =>
  names !== null && field.role === 'ordinary' && names.includes(field.lower);

// ---- what the fields of a request say about who asks, and how: claims, until it is known whose they are ----

interface Fields {
  readonly headers: readonly HeaderField[];
}

/** X-Forwarded-For, several fields as one list; empty: none. */
export const forwardedForOf = ({ headers }: Fields): string => {
  let chain = '';
  for (const field of headers) {
    if (field.role !== 'forwarded-for') continue;
    const { value } = field;
    if (value !== '') chain += chain === '' ? value : `, ${value}`;
  }
  return chain;
};

/** X-Forwarded-Proto; of a list the last, which the nearest proxy has written. null: none, or something else. */
export const forwardedProtoOf = ({ headers }: Fields): 'http' | 'https' | null => {
  let last = '';
  for (const field of headers) {
    if (field.role !== 'forwarded' || field.lower !== 'x-forwarded-proto') continue;
    eachListItem(field.value.toLowerCase(), (item) => {
      last = item;
    });
  }
  return last === 'http' || last === 'https' ? last : null;
};

/** X-Forwarded-Port; the last, as with the others. null: none, or no port. */
const forwardedPortOf = ({ headers }: Fields): string | null => {
  let last = '';
  for (const field of headers) {
    if (field.role !== 'forwarded' || field.lower !== 'x-forwarded-port') continue;
    eachListItem(field.value, (item) => {
      last = item;
    });
  }
  return /^[1-9]\d{0,4}$/.test(last) && Number(last) <= 65_535 ? last : null;
};
