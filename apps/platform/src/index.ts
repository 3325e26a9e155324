export type { ProcessorAccess } from './billing/billing.ts';
export { Database } from './db/database.ts';
export { masterKeySource } from './db/master-key.ts';
export { checkSchema, migrate, migratePatiently, type SchemaCheck } from './db/migrate.ts';
export { type MailNotice, SmtpTransport } from './mail/mail-transport.ts';
export { createPlatform, type Platform, type PlatformDeps } from './platform.ts';
export { type ListedUser, listUsers, restore, setPlan, suspend } from './services/accounts/account-standing.ts';
export { markRestored } from './services/accounts/mark-restored.ts';
export { createUser, deleteUser, invite, sendPasswordReset } from './services/accounts/operator-accounts.ts';
export { PasswordHasher } from './services/auth/password-hasher.ts';
export { type ListedSigningKey, listSigningKeys, rotateSigningKeys } from './services/auth/signing-key-store.ts';
export {
  type ListedCertificate,
  listCertificates,
  renewCertificate,
} from './services/certificates/operator-certificates.ts';
export { fetchRelease, type ListedRelease, listRelease } from './services/downloads/fetch-release.ts';
export { createCredential, type ListedEdge, listCredentials, revokeCredential } from './services/edges/credentials.ts';
export { setUnlimited } from './services/keys/keys.ts';
export {
  createOauthClient,
  listOauthClients,
  type RegisteredClient,
  revokeOauthClient,
} from './services/oauth/clients.ts';
export type { OperatorActor } from './services/shared/service-context.ts';
