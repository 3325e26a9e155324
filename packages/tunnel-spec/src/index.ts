export { type Proto } from './option.ts';
export { entryShape, hasOption, OPTION_KEYS, type OptionKey, optionOf, SECRET_KEYS } from './tunnel-spec.ts';
