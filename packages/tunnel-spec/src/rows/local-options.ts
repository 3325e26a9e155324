// Options for where visitors are taken to on this machine.
import { EVERY, GROUPED, HTTP, rows, WITH_HOST, WITH_SOCKET } from '../option.ts';
import { filledText, flag, oneOf, table, wholeNumber } from '../values.ts';

const files = table({ dir: filledText(), spa: flag().default(false), listing: flag().default(false) });

export const LOCAL_OPTIONS = rows({
  local_port: {
    protos: EVERY,
    schema: wholeNumber(1, 65_535).optional(),
    reload: 'retarget',
    docs: {
      type: '1 to 65535',
      meaning: 'port of the local service; or `local_socket`, or `files`; with `p2p_connect` there is none',
      isRequired: true,
    },
  },
  local_socket: {
    protos: GROUPED,
    schema: filledText().optional(),
    reload: 'retarget',
    docs: {
      type: 'path',
      meaning: 'http, https, tcp, tls: a Unix socket instead of a port; at most 107 bytes, seen from this file',
    },
  },
  allow_control_socket: {
    protos: GROUPED,
    schema: flag().default(false),
    reload: 'same',
    flag: {
      long: 'yes-publish-socket',
      value: { kind: 'is', value: true },
      help: 'Publish a control socket of the system, such as docker.sock',
      heading: 'service',
      commands: WITH_SOCKET,
    },
    docs: {
      type: 'boolean',
      meaning:
        '`local_socket` may be a control socket of the system, such as that of docker ([cli.md](cli.md#a-unix-socket))',
    },
  },
  files: {
    protos: ['http'],
    schema: files.optional(),
    reload: 'retarget',
    fields: {
      dir: {
        docs: {
          type: 'path',
          meaning: 'http: a folder that the client serves, instead of a port; seen from this file',
          isRequired: true,
        },
      },
      spa: {
        flag: {
          value: { kind: 'is', value: true },
          help: 'Answer missing pages with index.html',
          heading: 'service',
          isCommon: true,
          commands: ['files'],
        },
        docs: {
          type: 'boolean',
          meaning: '`index.html` for pages that are not there: GETs that accept `text/html`',
        },
      },
      listing: {
        flag: {
          value: { kind: 'is', value: true },
          help: 'List folders that have no index.html',
          heading: 'service',
          isCommon: true,
          commands: ['files'],
        },
        docs: { type: 'boolean', meaning: 'a folder without an `index.html` shows what is in it' },
      },
    },
  },
  local_host: {
    protos: EVERY,
    schema: filledText().default('127.0.0.1'),
    reload: 'retarget',
    flag: {
      shown: '<host>',
      value: { kind: 'text' },
      help: 'Host of the local service (default: 127.0.0.1)',
      heading: 'service',
      commands: WITH_HOST,
    },
    docs: { type: 'string', meaning: 'its host' },
  },
  local_protocol: {
    protos: HTTP,
    schema: oneOf(['http1', 'h2c']).default('http1'),
    reload: 'retarget',
    flag: {
      shown: '<protocol>',
      value: { kind: 'choice', values: ['http1', 'h2c'] },
      help: 'Local protocol; use h2c for gRPC',
      heading: 'service',
      showsDefault: true,
      commands: ['http'],
    },
    docs: {
      type: '`http1`, `h2c`',
      meaning: '`http` only: what the service speaks. `h2c` (HTTP/2 without TLS) is what gRPC needs',
    },
  },
  local_tls_verify: {
    protos: ['https'],
    schema: flag().default(true),
    reload: 'retarget',
    flag: {
      long: 'local-tls-no-verify',
      value: { kind: 'is', value: false },
      help: 'Accept any certificate of the local service',
      heading: 'service',
      commands: ['http'],
    },
    docs: { type: 'boolean', meaning: "`https` only: check the local service's certificate" },
  },
});
