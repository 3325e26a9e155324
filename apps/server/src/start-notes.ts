// What the start says beside the addresses: the warnings of the config, who may sign up, and where a file differs from a start without one.
import { type ConfiguredParts, configWarnings, isPublic, type ServerConfig } from '@tunnel/runtime';

/** The file that `npm start` stands for when it is given none: one machine, nothing held back. */
export const STACK_DEFAULTS = {
  load_balancing: { enabled: true },
  platform: { plans: { free: { tunnel_limit: 100 } } },
} as const;

export const startNotes = (config: ServerConfig, parts: ConfiguredParts): string[] => {
  const warnings = configWarnings(config, parts);
  const isSaid = (key: string): boolean => warnings.some((warning) => warning.key === key);
  return [
    ...warnings.map(({ text }) => `warning: ${text}`),
    ...signUp(config, parts),
    ...(parts === 'stack' ? differences(config).filter(({ key }) => !isSaid(key)) : []).map(({ text }) => text),
  ];
};

/** Sign-up is open by default, so that the first hour needs no invitation. */
const signUp = (config: ServerConfig, parts: ConfiguredParts): string[] =>
  parts === 'edge' || config.platform.sign_up !== 'open' || !isPublic(config, parts)
    ? []
    : ['note: anyone can sign up (platform.sign_up = "open"; "invite" and "closed" keep strangers out)'];

interface Difference {
  readonly key: string;
  readonly text: string;
}

/** Whoever tried the server without a file, and gives it one, meets these by surprise. */
const differences = ({ load_balancing, platform }: ServerConfig): Difference[] => {
  const keys = [
    ['load_balancing.enabled', load_balancing.enabled, STACK_DEFAULTS.load_balancing.enabled],
    [
      'platform.plans.free.tunnel_limit',
      platform.plans['free']?.tunnel_limit ?? 'none',
      STACK_DEFAULTS.platform.plans.free.tunnel_limit,
    ],
  ] as const;
  return keys
    .filter(([, here, without]) => here !== without)
    .map(([key, here, without]) => ({ key, text: `note: ${key} is ${here} (${without} without --config)` }));
};
