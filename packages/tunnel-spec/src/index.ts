export type { Flag, FlagValue, Proto, TunnelCommand } from './option.ts';
export { defaultOf, entryShape, hasOption, OPTION_KEYS, type OptionKey, optionOf, SECRET_KEYS } from './tunnel-spec.ts';
