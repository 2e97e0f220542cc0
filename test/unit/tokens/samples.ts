/** Texts of many kinds, as prompts hold them. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..', '..');
const file = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Bytes that look random and are the same each time. */
function noise(length: number): Buffer {
  const blocks: Buffer[] = [];
  for (let i = 0; i * 32 < length; i++) {
    blocks.push(createHash('sha256').update(`noise ${i}`).digest());
  }
  return Buffer.concat(blocks).subarray(0, length);
}

const letters = [...noise(3000)].map((byte) => String.fromCharCode(97 + (byte % 26))).join('');
const rows = Array.from({ length: 60 }, (_, i) => i);

export const samples: { readonly [kind: string]: string } = {
  'English prose': file('CONTRIBUTING.md') + file('docs/maintainer/path.md'),
  licence: file('LICENSE'),
  TypeScript: file('src/json/parse.ts') + file('src/compose/start.ts'),
  'JSON, minified': JSON.stringify(file('package.json')) + file('docs/gateway.schema.json'),
  'JSON, indented': file('docs/gateway.schema.json'),
  'JSON tool': JSON.stringify({
    type: 'function',
    function: {
      name: 'get_current_weather',
      description: 'Get the current weather in a given location',
      parameters: {
        type: 'object',
        properties: {
          location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' },
          unit: { type: 'string', enum: ['celsius', 'fahrenheit'] },
        },
        required: ['location'],
      },
    },
  }),
  base64: noise(6000).toString('base64'),
  hex: noise(3000).toString('hex'),
  numbers: rows.map((i) => ((i * 7919) % 100_003) / 7).join(', '),
  'log lines': rows
    .map(
      (i) => `2026-11-21T05:07:${i}.123Z INFO [worker-${i}] GET /v1/models?limit=${i} 200 ${i}ms`,
    )
    .join('\n'),
  'random words': letters.replaceAll(/(.{9})/g, '$1 '),
  identifiers: 'getElementById removeEventListenerFromAllChildren max_output_tokens_per_request ',
  SQL: 'SELECT CUSTOMER_ID, ORDER_DATE FROM CUSTOMER_ORDERS WHERE STATUS_CODE = 404 AND NOT DELETED;',
  HTML: '<div class="container mx-auto"><p style="color:#ff0000">Hello &amp; welcome</p></div>',
  Chinese:
    '人工智能的发展正在改变我们的生活方式，从医疗到教育，从交通到娱乐，每一个领域都受到了深刻的影响。' +
    '然而，随之而来的伦理和安全问题也不容忽视。道可道，非常道。名可名，非常名。無名天地之始；有名萬物之母。',
  Japanese:
    '吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で' +
    'ニャーニャー泣いていた事だけは記憶している。',
  Korean:
    '모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 ' +
    '양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다.',
  Russian:
    'Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и ' +
    'совестью и должны поступать в отношении друг друга в духе братства.',
  Greek:
    'Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι ' +
    'προικισμένοι με λογική και συνείδηση.',
  Arabic:
    'يولد جميع الناس أحراراً متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميراً وعليهم أن يعامل بعضهم ' +
    'بعضاً بروح الإخاء.',
  Hebrew:
    'כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם ' +
    'לנהוג איש ברעהו ברוח של אחוה.',
  Hindi:
    'सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है।',
  Thai: 'มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม',
  Georgian: 'ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.',
  German:
    'Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und ' +
    'Gewissen begabt. Donaudampfschifffahrtsgesellschaftskapitän.',
  French:
    'Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison ' +
    'et de conscience.',
  Finnish:
    'Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu ' +
    'järki ja omatunto, ja heidän on toimittava toisiaan kohtaan veljeyden hengessä.',
  Polish:
    'Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni ' +
    'rozumem i sumieniem.',
  Turkish:
    'Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler.',
  Vietnamese:
    'Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Mọi con người đều ' +
    'được tạo hoá ban cho lý trí và lương tâm.',
  emoji: '😀🎉🚀👩‍👩‍👧‍👦🏳️‍🌈❤️🔥✨🇩🇪🤷🏽‍♀️',
  'box drawing': '┌──────────┬─────┐\n│ name     │ age │\n├──────────┼─────┤\n│ Ada      │ 36  │',
  mathematics: '∀ε>0 ∃δ>0: |x−a|<δ ⇒ |f(x)−f(a)|<ε, ∑ᵢ₌₁ⁿ xᵢ² ≤ ∫₀^∞ e^{−x} dx ≈ 1',
  signs: '!!!???...;;;:::---===+++***///|||~~~```"""((()))[[[]]]{{{}}} #$%^&*()_+-=[]{};:,./<>?',
  indentation: rows.map((i) => `${' '.repeat(4 * (i % 6))}if (x) {`).join('\n'),
};
