// Options for the public address, and how the edge treats visitors.
import * as z from 'zod';
import { CARRIED, HTTP, NAMED, PORTED, rows } from '../option.ts';
import { filledText, flag, oneOf, wholeNumber } from '../values.ts';

const HOST_HEADER = '"keep", "rewrite" or a host name';

export const PUBLIC_OPTIONS = rows({
  remote_port: {
    protos: PORTED,
    schema: wholeNumber(1, 65_535).optional(),
    reload: 'reopen',
    flag: {
      shown: '<port>',
      value: { kind: 'whole', from: 1, to: 65_535 },
      help: 'Public port to use (default: any free one)',
      heading: 'address',
      isCommon: true,
    },
    docs: { type: '1 to 65535', meaning: '`tcp` and `udp`: ask for this public port' },
  },
  idle_secs: {
    protos: ['udp'],
    schema: wholeNumber(5, 3600).optional(),
    reload: 'reopen',
    flag: {
      long: 'idle',
      shown: '<seconds>',
      value: { kind: 'whole', from: 5, to: 3600 },
      help: "Silence that ends a visit (default: the edge's)",
      heading: 'service',
      isCommon: true,
    },
    docs: {
      type: '5 to 3600',
      meaning: '`udp` only: a visitor who is silent for so long is forgotten; without it as the edge has it',
    },
  },
  proxy_protocol: {
    protos: CARRIED,
    schema: oneOf(['v1', 'v2']).optional(),
    reload: 'reopen',
    flag: {
      shown: '<version>',
      value: { kind: 'choice', values: ['v1', 'v2'] },
      choicesFor: { udp: ['v2'] },
      help: 'Name visitors by PROXY protocol',
      heading: 'service',
      isCommon: true,
    },
    docs: {
      type: '`v1` (`tcp`, `tls`), `v2`',
      meaning: '`tcp`, `tls`, `udp`: a PROXY protocol header names the visitor to the service, before its first byte',
    },
  },
  subdomain: {
    protos: NAMED,
    schema: filledText().optional(),
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
        "HTTP, `tls`: ask for this name, or `a.NAME`, `'*.NAME'` below a name of yours; HTTP: without it one is assigned",
    },
  },
  domain: {
    protos: NAMED,
    schema: filledText().optional(),
    reload: 'reopen',
    flag: {
      shown: '<host>',
      value: { kind: 'text' },
      help: 'Your own domain instead (see `tunnel domains`)',
      heading: 'address',
      isCommon: true,
    },
    docs: {
      type: 'host name',
      meaning: 'HTTP, `tls`: a [domain of your own](domains.md#own-domains) in place of `subdomain`',
    },
  },
  host_header: {
    protos: HTTP,
    schema: z
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
      meaning: "HTTP: the visitor's `Host` as it is, the local address instead, or this name",
    },
  },
  capture: {
    protos: HTTP,
    schema: flag().default(true),
    reload: 'reopen',
    flag: {
      long: 'no-capture',
      value: { kind: 'is', value: false },
      help: 'Do not record requests',
      heading: 'output',
    },
    docs: {
      type: 'boolean',
      meaning: 'HTTP: keep requests for a look and a replay, at the edge and in the local inspector',
    },
  },
});
