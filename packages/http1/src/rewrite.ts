// Converts heads for the next hop: the request head for the local service, and the response head for the visitor. Decides which fields
// pass unchanged and which fields are rewritten.
import { eachListItem, isFieldValue } from './characters.ts';
import type { ChunkedForm } from './chunked-body.ts';
import { type FieldRole, type HeaderField, LineField, PartField } from './fields.ts';
import { type Framing, UNTIL_CLOSE } from './framing.ts';
import type { HttpVersion, RequestHead } from './request-head.ts';
import type { ResponseHead } from './response-head.ts';

// ---- request for the service: the visitor's request without connection-specific fields, plus the fields written by the edge ----

export interface ServiceRequestOptions {
  readonly visitorAddress: string;
  /**
   * Complete value of X-Forwarded-For, given if a trusted proxy sent the request. If absent, the address is appended to the visitor's own
   * header.
   */
  readonly forwardedFor?: string | undefined;
  /** Scheme (http or https) by which the visitor reached the edge. */
  readonly proto: 'http' | 'https';
  /** Host header for the service. With `keep`, the service sees the public host name. */
  readonly hostHeader: 'keep' | { readonly rewrite: string };
  /**
   * Value of X-Tunnel-Secret, which proves to the service that the forwarded headers come from the edge. Absent for services that do not
   * know the edge. A visitor's X-Tunnel-Secret is never passed on.
   */
  readonly secret?: string | undefined;
  /**
   * Value of X-Tunnel-Replay: the id of the replayed request. Absent for a visitor's own request. A visitor's X-Tunnel-Replay is never
   * passed on.
   */
  readonly replayOf?: string | undefined;
  /** The edge's place in the trace of the request. Absent if the visitor's trace headers pass unchanged. */
  readonly trace?: ServiceTrace | undefined;
}

export interface ServiceTrace {
  /** Value of the traceparent header. */
  readonly traceparent: string;
  /** Lower-case names of the visitor's headers that are not passed on. */
  readonly replaced: readonly string[];
}

/** Renders the request head for the service. Always HTTP/1.1, whatever version the visitor uses; one character per byte. */
export const requestHeadFor = (head: RequestHead, options: ServiceRequestOptions): string =>
  `${head.method} ${head.path} HTTP/1.1\r\nHost: ${hostFor(head, options)}\r\n${keptLines(withoutTrace(head, options), isKeptOf(head, options))}` +
  `X-Forwarded-For: ${forwardedFor(head, options)}\r\n` +
  `X-Forwarded-Proto: ${options.proto}\r\nX-Forwarded-Host: ${head.authority}\r\n` +
  `X-Forwarded-Port: ${forwardedPort(head, options)}\r\nX-Real-IP: ${printable(options.visitorAddress)}\r\n` +
  `${secretLine(options)}${traceLine(options)}${framingLine(head)}${connectionLines(head)}${replayLine(options)}\r\n`;

const secretLine = ({ secret }: ServiceRequestOptions): string =>
  secret === undefined ? '' : `X-Tunnel-Secret: ${printable(secret)}\r\n`;

const traceLine = ({ trace }: ServiceRequestOptions): string =>
  trace === undefined ? '' : `traceparent: ${printable(trace.traceparent)}\r\n`;

/** Returns the head without the visitor's headers that the edge replaces by its own place in the trace. */
const withoutTrace = (head: RequestHead, { trace }: ServiceRequestOptions): ReadHead => {
  if (trace === undefined || trace.replaced.length === 0) return head;
  return { headers: head.headers, connectionNames: [...(head.connectionNames ?? []), ...trace.replaced] };
};

/** Renders X-Tunnel-Replay. Must be the last line of the head, because the client looks for it only there. */
const replayLine = ({ replayOf }: ServiceRequestOptions): string =>
  replayOf === undefined ? '' : `X-Tunnel-Replay: ${printable(replayOf)}\r\n`;

/** The request for an HTTP/2 service. HTTP/2 has a separate framing for bodies, and no connection-specific fields. */
interface ServiceRequestFields {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly fields: readonly HeaderField[];
}

export const requestFieldsFor = (head: RequestHead, options: ServiceRequestOptions): ServiceRequestFields => {
  const fields = keptFields(withoutTrace(head, options), isKeptOf(head, options));
  fields.push(
    new PartField('x-forwarded-for', forwardedFor(head, options), 'forwarded-for'),
    new PartField('x-forwarded-proto', options.proto, 'forwarded'),
    new PartField('x-forwarded-host', head.authority, 'forwarded'),
    new PartField('x-forwarded-port', forwardedPort(head, options), 'forwarded'),
    new PartField('x-real-ip', printable(options.visitorAddress), 'forwarded'),
  );
  if (options.secret !== undefined)
    fields.push(new PartField('x-tunnel-secret', printable(options.secret), 'forwarded'));
  if (options.trace !== undefined)
    fields.push(new PartField('traceparent', printable(options.trace.traceparent), 'ordinary'));
  if (options.replayOf !== undefined)
    fields.push(new PartField('x-tunnel-replay', printable(options.replayOf), 'forwarded'));
  if (head.framing.kind === 'length') fields.push(new PartField('content-length', `${head.framing.length}`, 'length'));
  if (takesTrailers(head)) fields.push(new PartField('te', 'trailers', 'te'));
  return { method: head.method, path: head.path, authority: hostFor(head, options), fields };
};

const hostFor = ({ authority }: RequestHead, { hostHeader }: ServiceRequestOptions): string =>
  hostHeader === 'keep' ? authority : printable(hostHeader.rewrite);

/** Returns true if a trusted proxy sent the request. The proxy's other headers about the visitor are then trusted as well. */
const isProxied = ({ forwardedFor: known }: ServiceRequestOptions): boolean => known !== undefined;

const isKeptOf = ({ version }: RequestHead, options: ServiceRequestOptions): ((role: FieldRole) => boolean) => {
  if (isProxied(options)) return version === '1.1' ? isKeptOf11OfProxy : isKeptOf10OfProxy;
  return version === '1.1' ? isKeptOf11 : isKeptOf10;
};

const isKeptOf11 = (role: FieldRole): boolean => role === 'ordinary' || role === 'expect';

/** HTTP/1.0 visitors do not understand 100 (Continue), so the service must not be asked to send it (RFC 9110, 10.1.1). */
const isKeptOf10 = (role: FieldRole): boolean => role === 'ordinary';

const isKeptOf11OfProxy = (role: FieldRole): boolean => role === 'claim' || isKeptOf11(role);

const isKeptOf10OfProxy = (role: FieldRole): boolean => role === 'claim' || isKeptOf10(role);

const forwardedFor = (head: RequestHead, { forwardedFor: known, visitorAddress }: ServiceRequestOptions): string => {
  if (known !== undefined) return known;
  const claim = forwardedForOf(head);
  return claim === '' ? printable(visitorAddress) : `${claim}, ${printable(visitorAddress)}`;
};

/** Returns the port that the visitor requested: from a trusted proxy, otherwise from the authority, otherwise the default port. */
const forwardedPort = (head: RequestHead, options: ServiceRequestOptions): string => {
  const said = isProxied(options) ? forwardedPortOf(head) : null;
  if (said !== null) return said;
  const { authority, host } = head;
  // The authority starts with the host, in the same length, optionally followed by a colon and the port.
  const port = authority.length > host.length + 1 ? authority.slice(host.length + 1) : '';
  return port === '' ? USUAL_PORT[options.proto] : port;
};

const USUAL_PORT = { http: '80', https: '443' } as const;

/** Renders the framing field from the parsed value: the service might interpret a spelling such as `Content-Length: 0005` differently. */
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

/**
 * Removes characters that could end a header line. The values do not come from a parsed head, but were checked at their origin; the
 * removal is a second safeguard.
 */
const printable = (value: string): string =>
  isFieldValue(value) ? value : [...value].filter((character) => isFieldValue(character)).join('');

// ---- response for the visitor: the service's response with framing and connection fields for the visitor's HTTP version ----

interface VisitorResponseOptions {
  readonly visitorVersion: HttpVersion;
  /** True if both the visitor and the edge want to keep the connection. */
  readonly keepAlive: boolean;
}

export interface VisitorResponse {
  /** Response head for the visitor, one character per byte. Empty if nothing can be sent: a 1xx response in HTTP/1.0. */
  readonly text: string;
  /** Framing of the response for the visitor, by which the visitor finds the end of the body. */
  readonly framing: Framing;
  /** Form in which a chunked body must be passed on to the visitor. */
  readonly form: ChunkedForm;
  /** False if the visitor's connection must be closed after the response body. */
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

/** Returns the response fields for an HTTP/2 visitor. Excludes framing, because HTTP/2 has a separate framing. */
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

/**
 * Renders the framing field of a response. Responses to HEAD and 304 responses get the length or coding that the body would have had; 1xx
 * and 204 responses get none (RFC 9110, 8.6).
 */
const responseFramingLine = (head: ResponseHead, isOld: boolean): string => {
  if (head.status < 200 || head.status === 204) return '';
  if (head.contentLength !== null) return `Content-Length: ${head.contentLength}\r\n`;
  return head.isChunked && !isOld ? 'Transfer-Encoding: chunked\r\n' : '';
};

const responseConnectionLines = (head: ResponseHead, keepAlive: boolean, isOld: boolean): string => {
  if (head.status === 101) return `Connection: Upgrade\r\nUpgrade: ${head.upgrade ?? ''}\r\n`;
  // A 426 response names the required protocol in Upgrade (RFC 9110, 15.5.22).
  if (head.upgrade !== null) {
    return `Connection: ${keepAlive ? 'Upgrade' : 'close, Upgrade'}\r\nUpgrade: ${head.upgrade}\r\n`;
  }
  if (!keepAlive) return 'Connection: close\r\n';
  return isOld ? 'Connection: keep-alive\r\n' : '';
};

// ---- fields that pass unchanged ----

interface ReadHead {
  readonly headers: readonly HeaderField[];
  readonly connectionNames: readonly string[] | null;
}

/**
 * Returns the field lines that pass unchanged. Adjacent lines are cut out of the original text in one slice; fields given as parts are
 * rendered.
 */
const keptLines = (head: ReadHead, isKept: (role: FieldRole) => boolean): string => {
  let lines = '';
  let source = '';
  let from = -1;
  let to = -1;
  for (const field of head.headers) {
    const passes = isKept(field.role) && !isNamed(field, head.connectionNames);
    const isLine = passes && field instanceof LineField;
    // A field removed by a rule also ends the slice of head text that is copied unchanged.
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

/** Returns the fields that pass unchanged, as in keptLines, but as a list for HTTP/2. */
const keptFields = (head: ReadHead, isKept: (role: FieldRole) => boolean): HeaderField[] =>
  head.headers.filter((field) => isKept(field.role) && !isNamed(field, head.connectionNames));

/**
 * Returns true if `Connection` names the field, which makes the field specific to the connection (RFC 9110, 7.6.1). Applies only to
 * ordinary fields: a sender that names Host, Content-Length or Expect in `Connection` tries to have them removed.
 */
const isNamed = (field: HeaderField, names: readonly string[] | null): boolean =>
  names !== null && field.role === 'ordinary' && names.includes(field.lower);

// ---- fields of a request that describe the visitor; not trustworthy unless a trusted proxy has written them ----

interface Fields {
  readonly headers: readonly HeaderField[];
}

/** Returns the X-Forwarded-For fields as a single list, or '' if there are none. Any visitor can send these fields. */
export const forwardedForOf = ({ headers }: Fields): string => {
  let chain = '';
  for (const field of headers) {
    if (field.role !== 'forwarded-for') continue;
    const { value } = field;
    if (value !== '') chain += chain === '' ? value : `, ${value}`;
  }
  return chain;
};

/**
 * Returns the last item of X-Forwarded-Proto, which was written by the nearest proxy. Returns null if the field is absent or names
 * neither http nor https.
 */
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

/** Returns the last item of X-Forwarded-Port, which was written by the nearest proxy. Returns null if the field is absent or not a port. */
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
