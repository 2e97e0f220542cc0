/** Names and texts that no page may run, be misled by, or be broken by (S12, B65, N5). */

/**
 * Each calls `pwned` with its place if a page takes it for markup or script. Without spaces: model
 * names have none.
 */
export function xss(place: string): readonly string[] {
  return [
    `<img/src="x"/onerror="pwned('${place}-img')">`,
    `"><svg/onload=pwned('${place}-svg')>`,
    `<script>pwned('${place}-script')</script>`,
    `javascript:pwned('${place}-href')//`,
    `'-pwned('${place}-quote')-'`,
    `{{constructor.constructor("pwned('${place}-template')")()}}`,
    `</textarea></title></style><iframe/srcdoc="<script>parent.pwned('${place}-frame')</script>">`,
    `<a/href=javascript:pwned('${place}-link')>x</a>`,
    `![x](https://tracker.example/${place}.png)`,
    `<link/rel=stylesheet/href=https://tracker.example/${place}.css>`,
  ];
}

/** All of them as one text, for what may be long. */
export function xssText(place: string): string {
  return xss(place).join(' ');
}

/** Right-to-left override, zero-width characters, ANSI escapes, combining marks without an end. */
export const oddText =
  'user\u202Etxt.exe\u202C \u200B\u200D\uFEFFzero \u001B[31mred\u001B[0m Z\u0351\u0352\u0353\u0354\u0355 שלום عربي 🧑‍🚀';

/** The longest that a place takes, without a place to break it. */
export function longName(place: string, length: number): string {
  return `${place}-${'W'.repeat(length - place.length - 1)}`;
}
