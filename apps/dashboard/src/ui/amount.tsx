// Amounts in short, with the exact one as the title.
import { bytesText, countText, moneyText, shortCountText } from './format.ts';

export const Bytes = ({ value }: { readonly value: number }) => (
  <span title={`${countText(value)} bytes`} className="whitespace-nowrap">
    {bytesText(value)}
  </span>
);

export const Count = ({ value }: { readonly value: number }) => (
  <span title={countText(value)}>{shortCountText(value)}</span>
);

export const Money = ({ cents }: { readonly cents: number }) => <span>{moneyText(cents)}</span>;
