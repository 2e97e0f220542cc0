/** Formats of JSON Schema strings that the engine can hold an answer to, as grammar rules. */
const day31 = '("0" [1-9] | [12] [0-9] | "3" [01])';
const day30 = '("0" [1-9] | [12] [0-9] | "30")';
const day28 = '("0" [1-9] | "1" [0-9] | "2" [0-8])';
const long = '("0" [13578] | "10" | "12")';
const short = '("0" [469] | "11")';
const date = `("20" | "19") [0-9]{2} "-" (${long} "-" ${day31} | ${short} "-" ${day30} | "02-" ${day28})`;
const hour = '([01] [0-9] | "2" [0-3])';
const time = `${hour} ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] ${hour} ":" [0-5] [0-9])`;
const hex = (count: number): string => `[0-9a-f]{${count}}`;
const byte = '("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9] [0-9] | [0-9])';
const label = '[a-z0-9] ([-a-z0-9]{0,30} [a-z0-9])?';
const host = `${label} ("." ${label}){0,3} "." [a-z]{2,12}`;

/** What stands between the quotes. */
export const stringFormats: { readonly [format: string]: string | undefined } = {
  date,
  time,
  'date-time': `${date} "T" ${time}`,
  uuid: `${hex(8)} "-" ${hex(4)} "-4" ${hex(3)} "-" [89ab] ${hex(3)} "-" ${hex(12)}`,
  ipv4: `${byte} "." ${byte} "." ${byte} "." ${byte}`,
  ipv6: `[0-9a-f]{1,4} (":" [0-9a-f]{1,4}){7}`,
  hostname: host,
  email: `[a-z0-9] ([a-z0-9] | [._] [a-z0-9]){0,30} "@" ${host}`,
};
