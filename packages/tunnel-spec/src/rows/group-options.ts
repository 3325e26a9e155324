// Tunnel options for groups and for the health checks of group members.
import * as z from 'zod';
import { groupName } from '../names.ts';
import { GROUPED, rows, WITH_SOCKET } from '../option.ts';
import { filledSecret, filledText, flag, oneOf, seconds, table, url, wholeNumber } from '../values.ts';

const PATH = 'a path that begins with / and has no spaces or control characters';

const healthCheck = () =>
  table({
    /** Kind of the health check. Health checks are off if the key is absent. */
    type: oneOf(['tcp', 'http']).optional(),
    path: z
      .string({ error: PATH })
      .regex(/^\/[^\s\p{Cc}]{0,2047}$/u, { error: PATH })
      .optional(),
    interval_secs: seconds(86_400).default(10),
    timeout_secs: seconds(3600).default(3),
    max_failed: wholeNumber(1, 1000).default(3),
    expect_2xx: flag().default(true),
    alert_webhook: url({ orEmpty: false, concealed: true, maxCharacters: 2048 }).optional(),
  });

export const GROUP_OPTIONS = rows({
  group: {
    protos: GROUPED,
    schema: () => groupName().optional(),
    reload: 'reopen',
    flag: {
      shown: '<name>',
      value: { kind: 'text' },
      help: 'Join this group; visitors are balanced across its members',
      heading: 'balancing',
    },
    docs: {
      type: '1 to 100 characters without `@`',
      meaning: 'group to join; needs `group_key`, `group_key_env` or `group_key_file`',
    },
  },
  // No flag takes the group key directly, because process lists would show the key.
  group_key: {
    protos: GROUPED,
    schema: () => filledSecret().optional(),
    reload: 'reopen',
    isSecret: true,
    docs: { type: 'secret string', meaning: 'shared secret of the group; only a SHA-256 hash leaves the client' },
  },
  group_key_env: {
    protos: GROUPED,
    schema: () => filledText().optional(),
    reload: 'reopen',
    sourceOf: 'group_key',
    flag: {
      shown: '<variable>',
      value: { kind: 'text' },
      help: "Environment variable with the group's shared key",
      heading: 'balancing',
    },
    docs: { type: 'variable name', meaning: 'environment variable with the group key' },
  },
  group_key_file: {
    protos: GROUPED,
    schema: () => filledText().optional(),
    reload: 'reopen',
    sourceOf: 'group_key',
    flag: {
      shown: '<file>',
      value: { kind: 'path' },
      help: "File with the group's shared key",
      heading: 'balancing',
    },
    docs: {
      type: 'path',
      meaning: 'UTF-8 file with the group key; a trailing line break is ignored',
    },
  },
  health_check: {
    protos: GROUPED,
    schema: () => healthCheck().optional(),
    // Applies only to the health check keys known to the edge. A reload compares the keys of this table and keeps the tunnel open if only
    // other keys changed.
    reload: 'reopen',
    fields: {
      type: {
        flag: {
          long: 'health',
          shown: '<tcp|http:/path>',
          value: { kind: 'probe' },
          help: 'Check the local service by connecting or with a GET',
          heading: 'health',
          commands: WITH_SOCKET,
        },
        docs: {
          type: '`tcp`, `http`',
          meaning: 'turns on health checks: open a connection, or send a GET (not for `tls`)',
        },
      },
      path: {
        docs: { type: 'path', meaning: 'required with `http`; begins with `/`, no spaces or control characters' },
      },
      interval_secs: {
        flag: {
          long: 'health-interval',
          shown: '<seconds>',
          value: { kind: 'seconds', to: 86_400 },
          help: 'Time between checks (default: 10)',
          heading: 'health',
          commands: WITH_SOCKET,
        },
        docs: {
          type: 'seconds, above 0 to 86400',
          meaning: 'time from the start of one check to the next; fractions allowed',
        },
      },
      timeout_secs: {
        flag: {
          long: 'health-timeout',
          shown: '<seconds>',
          value: { kind: 'seconds', to: 3600 },
          help: 'Time limit for a check (default: 3)',
          heading: 'health',
          commands: WITH_SOCKET,
        },
        docs: {
          type: 'seconds, above 0 to 3600',
          meaning: 'time limit for one check, from connecting to the status line',
        },
      },
      max_failed: {
        flag: {
          long: 'health-max-failed',
          shown: '<n>',
          value: { kind: 'whole', from: 1, to: 1000 },
          help: 'Failures in a row until unhealthy (default: 3)',
          heading: 'health',
          commands: WITH_SOCKET,
        },
        docs: { type: '1 to 1000', meaning: 'failures in a row before the tunnel counts as unhealthy' },
      },
      expect_2xx: {
        flag: {
          long: 'health-any-status',
          value: { kind: 'is', value: false },
          help: 'Accept any HTTP status, not only 2xx',
          heading: 'health',
          commands: WITH_SOCKET,
        },
        docs: { type: 'boolean', meaning: '`false`: any HTTP status counts as healthy' },
      },
      alert_webhook: {
        flag: {
          long: 'alert-webhook',
          shown: '<url>',
          value: { kind: 'text' },
          help: 'URL to call when no member is healthy',
          heading: 'balancing',
          commands: WITH_SOCKET,
        },
        docs: { type: 'URL, up to 2048 characters', meaning: 'called when the group has no healthy member left' },
      },
    },
  },
});
