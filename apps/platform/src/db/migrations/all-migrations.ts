// The list of all migrations, in the order in which they are applied.
import * as accounts from './0001-accounts.ts';
import * as keysAndUsage from './0002-keys-and-usage.ts';
import * as signingKeys from './0003-signing-keys.ts';
import * as billing from './0004-billing.ts';
import * as regionsAndFilters from './0005-regions-and-filters.ts';
import * as retentionAndEntitlement from './0006-retention-and-entitlement.ts';
import * as encryptedSigningKeys from './0007-encrypted-signing-keys.ts';
import * as keysByAccount from './0008-keys-by-account.ts';
import * as tunnelAddresses from './0009-tunnel-addresses.ts';
import * as ownAccounts from './0010-own-accounts.ts';
import * as cards from './0011-cards.ts';
import * as changeEpochs from './0012-change-epochs.ts';
import * as oauth from './0013-oauth.ts';
import * as names from './0014-names.ts';
import * as servedEndpoints from './0015-served-endpoints.ts';
import * as domains from './0016-domains.ts';
import * as certificates from './0017-certificates.ts';
import * as p2pNames from './0018-p2p-names.ts';
import * as creations from './0019-creations.ts';
import * as assignedNames from './0020-assigned-names.ts';
import * as firstAccount from './0021-first-account.ts';
import * as schemaNotes from './0022-schema-notes.ts';
import type { SchemaMigration } from './schema-migration.ts';

/** The name of a released migration never changes. */
export const ALL_MIGRATIONS: Readonly<Record<string, SchemaMigration>> = {
  '0001-accounts': accounts,
  '0002-keys-and-usage': keysAndUsage,
  '0003-signing-keys': signingKeys,
  '0004-billing': billing,
  '0005-regions-and-filters': regionsAndFilters,
  '0006-retention-and-entitlement': retentionAndEntitlement,
  '0007-encrypted-signing-keys': encryptedSigningKeys,
  '0008-keys-by-account': keysByAccount,
  '0009-tunnel-addresses': tunnelAddresses,
  '0010-own-accounts': ownAccounts,
  '0011-cards': cards,
  '0012-change-epochs': changeEpochs,
  '0013-oauth': oauth,
  '0014-names': names,
  '0015-served-endpoints': servedEndpoints,
  '0016-domains': domains,
  '0017-certificates': certificates,
  '0018-p2p-names': p2pNames,
  '0019-creations': creations,
  '0020-assigned-names': assignedNames,
  '0021-first-account': firstAccount,
  '0022-schema-notes': schemaNotes,
};
