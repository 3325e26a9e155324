export type { ProcessorAccess } from './billing/billing.ts';
export { Database } from './db/database.ts';
export { migrate, migratePatiently, pendingMigrations } from './db/migrate.ts';
export type { MailNotice } from './mail/mail-transport.ts';
export { createPlatform, type Platform, type PlatformDeps } from './platform.ts';
export { type ListedUser, listUsers, restore, setPlan, setUnlimited, suspend } from './services/admin.ts';
export { createCredential, type ListedEdge, listCredentials, revokeCredential } from './services/edges/credentials.ts';
export type { OperatorActor } from './services/service-context.ts';
