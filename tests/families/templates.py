"""Chat templates with the habits of published ones, in our own words."""

_REPLY = "{% if add_generation_prompt %}"


IS_STRING = "message.content is string"


def listed(
    image: str,
    before: str,
    after: str,
    reply: str,
    *,
    start: str = "",
    printed: str = IS_STRING,
    video: str = "",
) -> str:
    """Reads strings and lists of parts; `printed`: when the content is printed as it is."""
    film = f"{{% elif part.type == 'video' %}}{video}" if video else ""
    image += film
    return (
        f"{start}{{% for message in messages %}}{before}"
        f"{{% if {printed} %}}{{{{ message.content }}}}{{% else %}}"
        "{% for part in message.content %}"
        f"{{% if part.type == 'image' %}}{image}{{% elif 'text' in part %}}{{{{ part.text }}}}{{% endif %}}"
        f"{{% endfor %}}{{% endif %}}{after}{{% endfor %}}{_REPLY}{reply}{{% endif %}}"
    )


def joined(before: str, after: str, reply: str) -> str:
    """Adds the content to other text, so it must be a string."""
    return (
        f"{{% for message in messages %}}{{{{ {before} + message.content + {after} }}}}{{% endfor %}}"
        f"{_REPLY}{reply}{{% endif %}}"
    )


CHATML_BEFORE, CHATML_AFTER = "<|im_start|>{{ message.role }}\n", "<|im_end|>\n"
CHATML_REPLY = "<|im_start|>assistant\n"
VISION = "<|vision_start|><|image_pad|><|vision_end|>"
VIDEO = "<|vision_start|><|video_pad|><|vision_end|>"

QWEN = listed(VISION, CHATML_BEFORE, CHATML_AFTER, CHATML_REPLY, video=VIDEO)

# Text is cut as a whole; thinking is off when told so, and on otherwise.
QWEN_THINKING = (
    "{% macro said(content) %}{% if content is string %}{{ content }}{% else %}{% for part in content %}"
    f"{{% if part.type == 'image' %}}{VISION}{{% elif part.type == 'video' %}}{VIDEO}"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}{% endmacro %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ said(message.content) | trim }}"
    f"<|im_end|>\n{{% endfor %}}{_REPLY}{CHATML_REPLY}"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}{% endif %}"
)

# Each text is cut; the system message is read from the first part and stands in the user's turn.
GEMMA_3 = (
    "{{ bos_token }}{% set asked = messages[1:] %}"
    "{% if messages[0].content is string %}{% set first = messages[0].content + '\n\n' %}"
    "{% else %}{% set first = messages[0].content[0].text + '\n\n' %}{% endif %}"
    "{% for message in asked %}<start_of_turn>{{ message.role }}\n{{ first if loop.first }}"
    "{% if message.content is string %}{{ message.content | trim }}{% else %}"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<start_of_image>{% else %}{{ part.text | trim }}{% endif %}"
    "{% endfor %}{% endif %}<end_of_turn>\n{% endfor %}"
    f"{_REPLY}<start_of_turn>model\n{{% endif %}}"
)

# The system message is printed as it is: a list as Python prints it. With thinking off, an empty thought
# opens the reply.
GEMMA_4 = (
    "{{ bos_token }}<|turn>system\n{{ '<|think|>\n' if enable_thinking }}"
    "{{ messages[0].content | trim }}<turn|>\n"
    "{% for message in messages[1:] %}<|turn>{{ message.role }}\n{% for part in message.content %}"
    "{% if part.type == 'image' %}<|image|>{% else %}{{ part.text | trim }}{% endif %}{% endfor %}<turn|>\n"
    f"{{% endfor %}}{_REPLY}<|turn>model\n"
    "{% if not enable_thinking %}<|channel>thought\n<channel|>{% endif %}{% endif %}"
)

GLM_IMAGE = "<|begin_of_image|><|image|><|end_of_image|>"
# The system message is printed as it is.
GLM_4_1V = listed(
    GLM_IMAGE,
    "<|{{ message.role }}|>\n",
    "",
    "<|assistant|>\n",
    start="[gMASK]<sop>",
    printed=f"message.role == 'system' or {IS_STRING}",
)
GLM_4_5V = listed(
    GLM_IMAGE,
    "<|{{ message.role }}|>\n",
    "{% if message.role == 'user' and not enable_thinking %}/nothink{% endif %}",
    "<|assistant|>\n{% if not enable_thinking %}<think></think>\n{% endif %}",
    start="[gMASK]<sop>",
)

INTERNVL = listed("<IMG_CONTEXT>\n", CHATML_BEFORE, CHATML_AFTER, CHATML_REPLY)

MEDIA = "<|media_start|>image<|media_content|><|media_pad|><|media_end|>"
KIMI = listed(
    MEDIA,
    "<|im_{{ message.role }}|>{{ message.role }}<|im_middle|>",
    "<|im_end|>",
    "<|im_assistant|>assistant<|im_middle|>",
)

# Takes all images before all text, and no strings.
IMAGES_FIRST = (
    "{% for message in messages %}<|im_start|>{{ message.role }} "
    "{% for part in message.content | selectattr('type', 'equalto', 'image') %}<image>{% endfor %}"
    "{% for part in message.content | selectattr('type', 'equalto', 'text') %}\n{{ part.text }}{% endfor %}"
    f"<|im_end|>{{% endfor %}}{_REPLY}<|im_start|>assistant\n{{% endif %}}"
)

LLAVA_MISTRAL = (
    "{{ bos_token }}[INST] {% for message in messages %}"
    "{% for part in message.content | selectattr('type', 'equalto', 'image') %}<image>\n{% endfor %}"
    "{% for part in message.content | selectattr('type', 'equalto', 'text') %}{{ part.text }}\n{% endfor %}"
    "{% endfor %}[/INST]"
)

# The system message is added to text before the user's list.
PIXTRAL = (
    "{{ bos_token }}{% for message in messages[1:] %}{{ '[INST]' + messages[0].content + '\n\n' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}[IMG]{% else %}{{ part.text }}{% endif %}{% endfor %}{% endif %}[/INST]"
    "{% endfor %}"
)
MISTRAL_3 = (
    "{{ bos_token }}[SYSTEM_PROMPT]{% if messages[0].content is string %}{{ messages[0].content }}"
    "{% else %}{{ messages[0].content[0].text }}{% endif %}[/SYSTEM_PROMPT]"
    "{% for message in messages[1:] %}[INST]{% if message.content is string %}{{ message.content }}{% else %}"
    "{% for part in message.content %}{% if part.type == 'image' %}[IMG]{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}[/INST]{% endfor %}"
)

PHI_3_5 = joined("'<|' + message.role + '|>\n'", "'<|end|>\n'", "<|assistant|>\n")
PHI_4 = joined("'<|' + message.role + '|>'", "'<|end|>'", "<|assistant|>")
# Asks a string's own methods.
MINICPM = (
    "{% for message in messages %}{% if not message.content.startswith('<tool_response>') %}"
    "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    f"{_REPLY}{CHATML_REPLY}{{% if not enable_thinking %}}<think>\n\n</think>\n\n{{% endif %}}{{% endif %}}"
)
