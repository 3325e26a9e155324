export { type GroupFields, groupSubdomain, refuseGroupFields, refuseGroupsOf } from './group.ts';
export {
  type LibraryTunnel,
  libraryNameOf,
  libraryTunnelOf,
  specOfLibrary,
} from './library-names.ts';
export { parseP2pName, problemOfServiceName } from './names.ts';
export { type Flag, type FlagValue, type Proto, type TunnelCommand } from './option.ts';
export {
  type P2pAudience,
  type P2pOffer,
  type P2pOfferFields,
  type P2pService,
  parseP2pOffer,
  peerEndpointOf,
  refuseP2pSecret,
} from './p2p-offer.ts';
export {
  type EntryFields,
  entryFields,
  hasOtherTarget,
  isRetarget,
  isUpdate,
  planReload,
  type ReloadOutcome,
  type RunningEntry,
  reloadOutcome,
  restartRequired,
  type WantedEntry,
} from './reload.ts';
export {
  defaultOf,
  entryShape,
  hasOption,
  OPTION_KEYS,
  type OptionKey,
  type OptionValue,
  optionOf,
  SECRET_KEYS,
  SPEC_KEYS,
  type SpecKey,
  specOfEntry,
  type TunnelSpec,
} from './tunnel-spec.ts';
