// Tunnel options for the public address, and for the edge's handling of visitors.
import * as z from 'zod';
import { CARRIED, HTTP, NAMED, PORTED, rows } from '../option.ts';
import { filledText, flag, oneOf, wholeNumber } from '../values.ts';

const HOST_HEADER = '"keep", "rewrite" or a host name';

export const PUBLIC_OPTIONS = rows({
  remote_port: {
    protos: PORTED,
    schema: () => wholeNumber(1, 65_535).optional(),
    reload: 'reopen',
    flag: {
      shown: '<port>',
      value: { kind: 'whole', from: 1, to: 65_535 },
      help: 'Public port to use (default: any free port)',
      heading: 'address',
      isCommon: true,
    },
    docs: { type: '1 to 65535', meaning: '`tcp`, `udp`: public port to request' },
  },
  idle_secs: {
    protos: ['udp'],
    schema: () => wholeNumber(5, 3600).optional(),
    reload: 'reopen',
    flag: {
      long: 'idle',
      shown: '<seconds>',
      value: { kind: 'whole', from: 5, to: 3600 },
      help: 'Idle time of a flow (default: set by the edge)',
      heading: 'service',
      isCommon: true,
    },
    docs: {
      type: '5 to 3600',
      meaning: '`udp` only: idle seconds until a flow ends; default set by the edge',
    },
  },
  proxy_protocol: {
    protos: CARRIED,
    schema: () => oneOf(['v1', 'v2']).optional(),
    reload: 'reopen',
    flag: {
      shown: '<version>',
      value: { kind: 'choice', values: ['v1', 'v2'] },
      choicesFor: { udp: ['v2'] },
      help: 'Send visitor addresses in a PROXY header',
      heading: 'service',
      isCommon: true,
    },
    docs: {
      type: '`v1` (`tcp`, `tls`), `v2`',
      meaning: "`tcp`, `tls`, `udp`: send the visitor's address to the service in a PROXY protocol header",
    },
  },
  subdomain: {
    protos: NAMED,
    schema: () => filledText().optional(),
    reload: 'reopen',
    flag: {
      shown: '<name>',
      value: { kind: 'text' },
      help: 'Subdomain to use (default: random)',
      helpFor: { tls: 'Subdomain to use' },
      heading: 'address',
      isCommon: true,
    },
    docs: {
      type: 'string',
      meaning:
        "HTTP, `tls`: subdomain to request; also `a.NAME` and `'*.NAME'` below your own `NAME`; HTTP default: random",
    },
  },
  domain: {
    protos: NAMED,
    schema: () => filledText().optional(),
    reload: 'reopen',
    flag: {
      shown: '<host>',
      value: { kind: 'text' },
      help: 'Your own domain to use (see `tunnel domains`)',
      heading: 'address',
      isCommon: true,
    },
    docs: {
      type: 'host name',
      meaning: 'HTTP, `tls`: [your own domain](domains.md#custom-domains) instead of a `subdomain`',
    },
  },
  host_header: {
    protos: HTTP,
    schema: () =>
      z
        .string({ error: HOST_HEADER })
        .regex(/^[!-~]{1,255}$/, { error: HOST_HEADER })
        .default('keep'),
    reload: 'reopen',
    flag: {
      shown: '<host>',
      value: { kind: 'text' },
      help: 'Host header: keep, rewrite, name',
      heading: 'service',
      isCommon: true,
      showsDefault: true,
      commands: ['http'],
    },
    docs: {
      type: '`keep`, `rewrite`, a host name',
      meaning: "HTTP: keep the visitor's `Host` header, replace it with the local address, or with this name",
    },
  },
  capture: {
    protos: HTTP,
    schema: () => flag().default(true),
    reload: 'reopen',
    flag: {
      long: 'no-capture',
      value: { kind: 'is', value: false },
      help: 'Do not capture requests',
      heading: 'output',
    },
    docs: {
      type: 'boolean',
      meaning: 'HTTP: capture requests on the edge and in the local inspector, for viewing and replay',
    },
  },
});
