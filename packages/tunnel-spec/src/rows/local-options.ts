// Options for the local target of a tunnel: port, socket, folder and local protocol.
import { EVERY, GROUPED, HTTP, rows, WITH_HOST, WITH_SOCKET } from '../option.ts';
import { filledText, flag, oneOf, table, wholeNumber } from '../values.ts';

const files = () => table({ dir: filledText(), spa: flag().default(false), listing: flag().default(false) });

export const LOCAL_OPTIONS = rows({
  local_port: {
    protos: EVERY,
    schema: () => wholeNumber(1, 65_535).optional(),
    reload: 'retarget',
    docs: {
      type: '1 to 65535',
      meaning: 'port of the local service; alternatives are `local_socket` and `files`; not with `p2p_connect`',
      isRequired: true,
    },
  },
  local_socket: {
    protos: GROUPED,
    schema: () => filledText().optional(),
    reload: 'retarget',
    docs: {
      type: 'path',
      meaning: 'http, https, tcp, tls: Unix socket instead of a port; at most 107 bytes, relative to this file',
    },
  },
  allow_control_socket: {
    protos: GROUPED,
    schema: () => flag().default(false),
    reload: 'same',
    flag: {
      long: 'yes-publish-socket',
      value: { kind: 'is', value: true },
      help: 'Allow publishing a control socket, such as docker.sock',
      heading: 'service',
      commands: WITH_SOCKET,
    },
    docs: {
      type: 'boolean',
      meaning:
        'allow `local_socket` to be a control socket of the system, such as docker.sock ([details](cli.md#a-unix-socket))',
    },
  },
  files: {
    protos: ['http'],
    schema: () => files().optional(),
    reload: 'retarget',
    fields: {
      dir: {
        docs: {
          type: 'path',
          meaning: 'http: folder to publish instead of a port; relative to this file',
          isRequired: true,
        },
      },
      spa: {
        flag: {
          value: { kind: 'is', value: true },
          help: 'Serve index.html for missing pages',
          heading: 'service',
          isCommon: true,
          commands: ['files'],
        },
        docs: {
          type: 'boolean',
          meaning: 'serve `index.html` for missing pages (GET requests that accept `text/html`)',
        },
      },
      listing: {
        flag: {
          value: { kind: 'is', value: true },
          help: 'List the contents of folders without an index.html',
          heading: 'service',
          isCommon: true,
          commands: ['files'],
        },
        docs: { type: 'boolean', meaning: 'list the contents of folders without an `index.html`' },
      },
    },
  },
  local_host: {
    protos: EVERY,
    schema: () => filledText().default('127.0.0.1'),
    reload: 'retarget',
    flag: {
      shown: '<host>',
      value: { kind: 'text' },
      help: 'Host of the local service (default: 127.0.0.1)',
      heading: 'service',
      commands: WITH_HOST,
    },
    docs: { type: 'string', meaning: 'host of the local service' },
  },
  local_protocol: {
    protos: HTTP,
    schema: () => oneOf(['http1', 'h2c']).default('http1'),
    reload: 'retarget',
    flag: {
      shown: '<protocol>',
      value: { kind: 'choice', values: ['http1', 'h2c'] },
      help: 'Protocol of the service; h2c for gRPC',
      heading: 'service',
      showsDefault: true,
      commands: ['http'],
    },
    docs: {
      type: '`http1`, `h2c`',
      meaning: '`http` only: protocol of the service; gRPC needs `h2c` (HTTP/2 without TLS)',
    },
  },
  local_tls_verify: {
    protos: ['https'],
    schema: () => flag().default(true),
    reload: 'retarget',
    flag: {
      long: 'local-tls-no-verify',
      value: { kind: 'is', value: false },
      help: 'Accept any certificate from the local service',
      heading: 'service',
      commands: ['http'],
    },
    docs: { type: 'boolean', meaning: "`https` only: check the local service's certificate" },
  },
});
