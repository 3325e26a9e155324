// Options for p2p tunnels: the publishing and the connecting end of a connection between two clients.
import { p2pName } from '../names.ts';
import { rows } from '../option.ts';
import { filledSecret, filledText, flag, listenPort, oneOf } from '../values.ts';

const BOTH_ENDS = ['p2p publish', 'p2p connect'] as const;

export const P2P_OPTIONS = rows({
  p2p_publish: {
    protos: ['p2p'],
    schema: () => p2pName().optional(),
    reload: 'reopen',
    docs: {
      type: 'same rules as a subdomain',
      meaning: '`p2p`: name to publish the local service under; the alternative is `p2p_connect`',
    },
  },
  p2p_connect: {
    protos: ['p2p'],
    schema: () => p2pName().optional(),
    reload: 'reopen',
    docs: {
      type: 'same rules as a subdomain',
      meaning: '`p2p`: name published by another client, to reach at `listen_port`',
    },
  },
  // No flag takes the p2p secret directly, because process lists would show the secret.
  p2p_secret: {
    protos: ['p2p'],
    schema: () => filledSecret().optional(),
    reload: 'reopen',
    isSecret: true,
    docs: {
      type: 'secret string',
      meaning: '`p2p`: secret shared by both ends, 16 to 1024 bytes; only a SHA-256 hash leaves the client',
    },
  },
  p2p_secret_env: {
    protos: ['p2p'],
    schema: () => filledText().optional(),
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
    docs: { type: 'variable name', meaning: 'environment variable with the secret' },
  },
  p2p_secret_file: {
    protos: ['p2p'],
    schema: () => filledText().optional(),
    reload: 'reopen',
    sourceOf: 'p2p_secret',
    flag: {
      long: 'secret-file',
      shown: '<file>',
      value: { kind: 'path' },
      help: 'File with the secret shared by both ends',
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: {
      type: 'path',
      meaning: 'UTF-8 file with the secret; a trailing line break is ignored',
    },
  },
  p2p_service: {
    protos: ['p2p'],
    schema: () => oneOf(['tcp', 'udp']).default('tcp'),
    reload: 'reopen',
    flag: {
      long: 'udp',
      value: { kind: 'is', value: 'udp' },
      help: 'Use for a UDP service (needed on both ends)',
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: { type: '`tcp`, `udp`', meaning: '`p2p`: protocol of the service; must be the same on both ends' },
  },
  p2p_allow: {
    protos: ['p2p'],
    schema: () => oneOf(['account', 'anyone']).default('account'),
    reload: 'reopen',
    flag: {
      long: 'allow',
      shown: '<who>',
      value: { kind: 'choice', values: ['account', 'anyone'] },
      help: 'Clients that can connect',
      heading: 'service',
      isCommon: true,
      showsDefault: true,
      commands: ['p2p publish'],
    },
    docs: {
      type: '`account`, `anyone`',
      meaning: '`p2p_publish`: API keys that can connect with the secret: keys of your account, or any key of the edge',
    },
  },
  p2p_direct: {
    protos: ['p2p'],
    schema: () => flag().default(true),
    reload: 'reopen',
    flag: {
      long: 'no-direct',
      value: { kind: 'is', value: false },
      help: "Use only the edge's relay, no direct path",
      heading: 'service',
      isCommon: true,
      commands: BOTH_ENDS,
    },
    docs: {
      type: 'boolean',
      meaning: '`p2p`: connect directly if both networks allow it; `false`: use only the relay',
    },
  },
  listen_port: {
    protos: ['p2p'],
    schema: () => listenPort().optional(),
    reload: 'reopen',
    flag: {
      long: 'listen',
      shown: '<[host:]port>',
      value: { kind: 'listen' },
      help: 'Local address to listen on (port 0: any free port)',
      heading: 'service',
      isCommon: true,
      commands: ['p2p connect'],
    },
    docs: {
      type: '0 to 65535',
      meaning: '`p2p_connect` (required): local port to listen on; 0: any free port',
    },
  },
  listen_host: {
    protos: ['p2p'],
    schema: () => filledText().default('127.0.0.1'),
    reload: 'reopen',
    docs: { type: 'string', meaning: '`p2p_connect`: the address to listen on' },
  },
});
