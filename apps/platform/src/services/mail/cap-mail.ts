// The mails about a spend cap: most of it is used, or all of it.
import { type CapNotice, showDollars } from '@tunnel/core';
import { writeLetter } from './letter.ts';
import { BILLING_PAGE, linkTo } from './link-to.ts';
import type { Mail } from './queue-mail.ts';

export interface CapNews {
  readonly percent: CapNotice;
  readonly capCents: number;
  readonly usedCents: number;
}

export const capMail = (publicUrl: string, recipient: string, { percent, capCents, usedCents }: CapNews): Mail => {
  const [cap, used] = [showDollars(capCents), showDollars(usedCents)];
  const link = linkTo(publicUrl, BILLING_PAGE);
  if (percent === 100) {
    return writeLetter({
      recipient,
      subject: `Your spend cap of ${cap} is reached`,
      opening: `The account ${recipient} has used ${used} this month, and its spend cap is ${cap}. Its tunnels are closed, and new ones are refused. To raise or remove the cap, please open this page:`,
      action: 'Look at the spend cap',
      link,
      closing: [
        'As soon as the cap is above the usage, tunnels can be opened again. The next month, in UTC, begins at zero.',
        'If the cap is there for a reason, there is nothing to do: no more usage is charged this month.',
      ],
    });
  }
  return writeLetter({
    recipient,
    subject: `${percent} % of your spend cap is used`,
    opening: `The account ${recipient} has used ${used} this month, and its spend cap is ${cap}. When the cap is reached, its tunnels are closed, and new ones are refused. To see the usage, or to change the cap, please open this page:`,
    action: 'Look at the spend cap',
    link,
    closing: ['If the cap is there for a reason, there is nothing to do.'],
  });
};
