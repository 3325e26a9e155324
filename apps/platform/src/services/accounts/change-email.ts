// Another address for an account: asked for with the password, made by the link that the new address gets. Neither the answer nor
// its time tells whether somebody has that address already; nothing is sent to one that is taken.
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

/** Notes the wish, in the same way for every address; whether it is free is looked up later, when the mail is written. */
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
 * Whoever opened the link has read the mail at the new address, so it is theirs, and may be told that another account has it by
 * now. Links that were mailed to the old address end; sessions and keys stay. The old address is told.
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
    // It became taken between the mail and the click.
    throw (error as { code?: unknown }).code === UNIQUE_VIOLATION ? new Fault('ACCOUNT_EXISTS') : error;
  }
  await trx
    .updateTable('mail_tokens')
    .set({ used_at: new Date(now) })
    .where('user_id', '=', userId)
    .where('used_at', 'is', null)
    .execute();
  // What it got before there was an account, as an invitation, is of this account too: it goes when that goes.
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
