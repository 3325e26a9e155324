// Change of an account's address: requested with the password, and completed by the link in a mail to the new address. Neither the
// response nor its timing reveals whether another account has the new address. If another account has the address, no mail is sent.
import type { EmailChange, MessageBody } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type { Transaction } from 'kysely';
import type { Schema } from '../../db/schema.ts';
import type { AuthContext } from '../auth/auth-context.ts';
import { checkOwnPassword } from '../auth/own-password.ts';
import { queueMail } from '../mail/mail-template.ts';
import { addressChangedMail } from '../mail/mails.ts';
import { writeAudit } from '../shared/audit.ts';
import { announceChange } from '../shared/edge-changes.ts';
import type { UserActor } from '../shared/service-context.ts';
import { requestMail } from './mail-requests.ts';
import { newAddress } from './new-user.ts';

export const CHANGE_EMAIL_ANSWER: MessageBody = {
  message:
    'if the address is available, we have sent a confirmation link; your current address stays until you confirm',
};

/**
 * Stores the request for a change of address, in the same way for every address. The availability of the address is checked later, when
 * the mail is written.
 */
export const changeEmail = async (
  context: Pick<AuthContext, 'db' | 'clock' | 'passwords'>,
  actor: UserActor,
  { password, new_email }: EmailChange,
): Promise<MessageBody> => {
  const email = newAddress(new_email, 'new_email');
  const { epoch } = await checkOwnPassword(context, actor, password);
  await requestMail(context, { typed: email, kind: 'change', change: { userId: actor.userId, epoch } });
  return CHANGE_EMAIL_ANSWER;
};

export interface ProvenAddress {
  readonly userId: string;
  readonly email: string;
  readonly publicUrl: string;
  readonly now: number;
}

const UNIQUE_VIOLATION = '23505';

/**
 * Sets the account's address to the new address, verified by the link in the mail. The user who opened the link owns the new address, so
 * an error may reveal that another account has taken the address meanwhile. Links mailed to the old address become invalid; sessions and
 * keys stay valid. A notice goes to the old address.
 */
export const setAddress = async (
  trx: Transaction<Schema>,
  { userId, email, publicUrl, now }: ProvenAddress,
): Promise<void> => {
  const { email: before } = await trx
    .selectFrom('users')
    .select('email')
    .where('id', '=', userId)
    .executeTakeFirstOrThrow();
  try {
    await trx
      .updateTable('users')
      .set({ email, email_verified_at: new Date(now) })
      .where('id', '=', userId)
      .execute();
  } catch (error) {
    // Another account took the address between the mail and the click.
    throw (error as { code?: unknown }).code === UNIQUE_VIOLATION ? new Fault('ACCOUNT_EXISTS') : error;
  }
  await trx
    .updateTable('mail_tokens')
    .set({ used_at: new Date(now) })
    .where('user_id', '=', userId)
    .where('used_at', 'is', null)
    .execute();
  // Mails sent to the old address before the account existed, such as an invitation, are assigned to the account too, and are deleted
  // together with the account.
  await trx
    .updateTable('mail_outbox')
    .set({ user_id: userId })
    .where('recipient', '=', before)
    .where('user_id', 'is', null)
    .execute();
  await queueMail(trx, addressChangedMail(publicUrl, before, email), { userId, now });
  await writeAudit(trx, { actor: `user:${userId}`, action: 'user.email-changed', userId });
  await announceChange(trx, { kind: 'account-changed', accountId: userId });
};
