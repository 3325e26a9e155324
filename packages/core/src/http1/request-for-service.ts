// The head that the local service gets: the visitor's, without what concerns only the visitor's connection, with what only we know.
import { isFieldValue } from './char-classes.ts';
import type { FieldRole } from './field-role.ts';
import { forwardedForOf } from './forwarded-claims.ts';
import { type HeaderField, PartField } from './header-field.ts';
import { keptFields, keptLines } from './kept-lines.ts';
import type { RequestHead } from './request-head.ts';

export interface ServiceRequestOptions {
  readonly visitorAddress: string;
  /** All of X-Forwarded-For, where a proxy that is believed has spoken; else the address is appended to what the visitor claims. */
  readonly forwardedFor?: string | undefined;
  /** How the visitor reached us. */
  readonly proto: 'http' | 'https';
  /** `keep`: the service sees the public name. */
  readonly hostHeader: 'keep' | { readonly rewrite: string };
}

/** HTTP/1.1 whatever the visitor speaks; one character per byte. */
export const requestHeadFor = (head: RequestHead, options: ServiceRequestOptions): string =>
  `${head.method} ${head.path} HTTP/1.1\r\nHost: ${hostFor(head, options)}\r\n${keptLines(head, isKeptOf(head))}` +
  `X-Forwarded-For: ${forwardedFor(head, options)}\r\n` +
  `X-Forwarded-Proto: ${options.proto}\r\nX-Forwarded-Host: ${head.authority}\r\n${framingLine(head)}${connectionLines(head)}\r\n`;

/** The same request for a service of HTTP/2, which frames bodies by itself and has no fields of a connection. */
export interface ServiceRequestFields {
  readonly method: string;
  readonly path: string;
  readonly authority: string;
  readonly fields: readonly HeaderField[];
}

export const requestFieldsFor = (head: RequestHead, options: ServiceRequestOptions): ServiceRequestFields => {
  const fields = keptFields(head, isKeptOf(head));
  fields.push(
    new PartField('x-forwarded-for', forwardedFor(head, options), 'forwarded-for'),
    new PartField('x-forwarded-proto', options.proto, 'forwarded'),
    new PartField('x-forwarded-host', head.authority, 'forwarded'),
  );
  if (head.framing.kind === 'length') fields.push(new PartField('content-length', `${head.framing.length}`, 'length'));
  if (takesTrailers(head)) fields.push(new PartField('te', 'trailers', 'te'));
  return { method: head.method, path: head.path, authority: hostFor(head, options), fields };
};

const hostFor = ({ authority }: RequestHead, { hostHeader }: ServiceRequestOptions): string =>
  hostHeader === 'keep' ? authority : printable(hostHeader.rewrite);

const isKeptOf = ({ version }: RequestHead): ((role: FieldRole) => boolean) =>
  version === '1.1' ? isKeptOf11 : isKeptOf10;

const isKeptOf11 = (role: FieldRole): boolean => role === 'ordinary' || role === 'expect';

/** A visitor of HTTP/1.0 does not know 100 (Continue), so the service must not be asked for one (RFC 9110, 10.1.1). */
const isKeptOf10 = (role: FieldRole): boolean => role === 'ordinary';

const forwardedFor = (head: RequestHead, { forwardedFor: known, visitorAddress }: ServiceRequestOptions): string => {
  if (known !== undefined) return known;
  const claim = forwardedForOf(head);
  return claim === '' ? printable(visitorAddress) : `${claim}, ${printable(visitorAddress)}`;
};

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
