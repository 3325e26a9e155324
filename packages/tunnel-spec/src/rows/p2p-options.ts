// Options for p2p tunnels: both ends of a connection between two clients.
import { p2pName } from '../names.ts';
import { rows } from '../option.ts';
import { filledSecret, filledText, flag, listenPort, oneOf } from '../values.ts';

const BOTH_ENDS = ['p2p publish', 'p2p connect'] as const;

export const P2P_OPTIONS = rows({
  p2p_publish: {
    protos: ['p2p'],
    schema: p2pName().optional(),
    reload: 'reopen',
    docs: {
      type: 'a name as of a subdomain',
      meaning: '`p2p`: publish the local service to other clients under this name; or `p2p_connect`',
    },
  },
  p2p_connect: {
    protos: ['p2p'],
    schema: p2pName().optional(),
    reload: 'reopen',
    docs: {
      type: 'likewise',
      meaning: '`p2p`: reach what another client publishes under this name, at `listen_port`',
    },
  },
  // No flag takes the secret itself, because a process list would show it.
  p2p_secret: {
    protos: ['p2p'],
    schema: filledSecret().optional(),
    reload: 'reopen',
    isSecret: true,
    docs: {
      type: 'secret string',
      meaning: '`p2p`: what both ends share, 16 to 1024 bytes; only its SHA-256 leaves the client',
    },
  },
  p2p_secret_env: {
    protos: ['p2p'],
    schema: filledText().optional(),
    reload: 'reopen',
    sourceOf: 'p2p_secret',
    flag: {
      long: 'secret-env',
      shown: '<variable>',
      value: { kind: 'text' },
      help: 'Variable with the secret (default: TUNNEL_P2P_SECRET)',
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: { type: 'name of a variable', meaning: 'which holds the secret' },
  },
  p2p_secret_file: {
    protos: ['p2p'],
    schema: filledText().optional(),
    reload: 'reopen',
    sourceOf: 'p2p_secret',
    flag: {
      long: 'secret-file',
      shown: '<file>',
      value: { kind: 'path' },
      help: 'File with the secret that both ends share',
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: {
      type: 'path',
      meaning: 'of a file of UTF-8 text that holds it; a line break at its end is left out',
    },
  },
  p2p_service: {
    protos: ['p2p'],
    schema: oneOf(['tcp', 'udp']).default('tcp'),
    reload: 'reopen',
    flag: {
      long: 'udp',
      value: { kind: 'is', value: 'udp' },
      help: 'The service speaks UDP (give it on both ends)',
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: { type: '`tcp`, `udp`', meaning: '`p2p`: what the service speaks; both ends say the same' },
  },
  p2p_allow: {
    protos: ['p2p'],
    schema: oneOf(['account', 'anyone']).default('account'),
    reload: 'reopen',
    flag: {
      long: 'allow',
      shown: '<who>',
      value: { kind: 'choice', values: ['account', 'anyone'] },
      help: 'Who may connect',
      heading: 'service',
      isCommon: true,
      showsDefault: true,
      commands: ['p2p publish'],
    },
    docs: {
      type: '`account`, `anyone`',
      meaning: '`p2p_publish`: who may connect with the secret: keys of the account, or every key of the edge',
    },
  },
  p2p_direct: {
    protos: ['p2p'],
    schema: flag().default(true),
    reload: 'reopen',
    flag: {
      long: 'no-direct',
      value: { kind: 'is', value: false },
      help: 'Only use the relay of the edge',
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: {
      type: 'boolean',
      meaning: '`p2p`: go direct where both networks allow it; `false`: through the relay alone',
    },
  },
  listen_port: {
    protos: ['p2p'],
    schema: listenPort().optional(),
    reload: 'reopen',
    flag: {
      long: 'listen',
      shown: '<[host:]port>',
      value: { kind: 'listen' },
      help: 'Where local programs find it (port 0: any free one)',
      heading: 'service',
      isCommon: true,
      commands: ['p2p connect'],
    },
    docs: {
      type: '0 to 65535',
      meaning: '`p2p_connect`, and needed there: where local programs find it; 0: any free port',
    },
  },
  listen_host: {
    protos: ['p2p'],
    schema: filledText().default('127.0.0.1'),
    reload: 'reopen',
    docs: { type: 'string', meaning: '`p2p_connect`: the address to listen on' },
  },
});
