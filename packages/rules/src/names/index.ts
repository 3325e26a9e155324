export { isLabel, LABEL } from './label.ts';
export {
  crowdedOut,
  FREE_NAME,
  holdMsOf,
  type NameEffect,
  type NameEvent,
  type NameOwnership,
  type NameRefusal,
  type NameRules,
  nameAt,
  nameEndsAt,
  owningLabel,
  refusalOfName,
  transitionName,
} from './name-ownership.ts';
export {
  foldSubdomain,
  generateName,
  isDomainItself,
  isEdgeItself,
  isOfDomain,
  platformLabelOf,
  problemOfPlainName,
  problemOfSubdomain,
  problemOfText,
  RESERVED_SUBDOMAINS,
  shownText,
  subdomainOf,
  WITHHELD_SUBDOMAINS,
  wildcardOver,
} from './names.ts';
export { PortLeases, type PortRequest, portsPerAccount, type ReservedPort, type WantedPort } from './port-leases.ts';
